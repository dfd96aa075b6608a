// The pairs within one group of rows whose key is equal.
//
//   a few rows         every word with every other one
//   many               equal rows are put together; then, if that is less work, the bits that differ among
//                      the words are cut into h + 1 runs: words within h agree on one of them. The group
//                      is partitioned by each run, and each part is a group again.
//
// A group is partitioned only if the pairs left to compare, counted before, save more than that costs.
// So however rows are distributed, the work is at most that of comparing them directly and a share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "pairs.hpp"
#include "pairs_tile.hpp"

namespace simindex {

// A row and the first of those equal to it.
struct Equal {
  std::uint32_t first;
  std::uint32_t row;
};

// What a choice of blocks says of a pair, in bits of its words and of its rows.
class Wish {
 public:
  Wish(const PairRows& rows, const BlockChoice& choice, std::uint64_t h);

  std::uint64_t word(std::size_t row) const;

  // Distance of two rows whose words differ in `differing`, more than h if they are not wanted.
  std::uint64_t distance(std::uint64_t differing, std::uint32_t a, std::uint32_t b) const;

  bool equal(std::uint32_t a, std::uint32_t b) const;

  const PairRows rows;
  const std::uint64_t h;
  std::uint64_t agree = 0;             // bits of a row's only word; 0 for rows of more
  std::vector<std::uint64_t> differ;   // the same, of each earlier block
  Sieve sieve;

 private:
  bool wide_wanted(std::uint32_t a, std::uint32_t b) const;

  std::vector<Bits> agree_wide_;
  std::vector<Bits> differ_wide_;
};

class GroupPairs {
 public:
  GroupPairs(const Wish& wish, int level)
      : wish_(wish), compare_(tile_compare(wish.sieve, level)), agree_(wish.agree),
        differ_(wish.differ) {}

  // Pairs of `size` rows and their words, which may be put in another order.
  void add(std::uint64_t* words, std::uint32_t* rows, std::uint32_t size,
           const std::function<bool()>& stopped);

  FoundPairs pairs;
  std::vector<Equal> equal;

 private:
  struct Run {  // of a group's bits
    std::uint64_t mask;
    std::uint64_t pairs;  // with equal keys
  };

  bool direct(const std::uint64_t* words, const std::uint32_t* rows, std::uint32_t size,
              bool may_repeat, const std::function<bool()>& stopped);
  bool split(const std::uint64_t* words, const std::uint32_t* rows, std::uint32_t size,
             const std::function<bool()>& stopped);
  void part(std::uint64_t* words, std::uint32_t* rows, std::uint32_t size,
            const std::function<bool()>& stopped);
  std::uint32_t without_repeats(std::uint64_t* words, std::uint32_t* rows, std::uint32_t size);

  const Wish& wish_;
  TileCompare compare_;
  std::uint64_t agree_;
  std::vector<std::uint64_t> differ_;
  Candidates candidates_;
  std::vector<std::uint32_t> table_;
};

}  // namespace simindex
