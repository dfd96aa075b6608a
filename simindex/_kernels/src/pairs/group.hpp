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
#include <span>
#include <vector>

#include "pairs/pairs.hpp"
#include "pairs/tile.hpp"

namespace simindex {

// What a choice of blocks says of a pair, in bits of its words and of its rows.
class Wish {
 public:
  Wish(const PairRows& rows, const BlockChoice& choice, std::uint64_t h);

  std::uint64_t word(std::size_t row) const;

  // Distance of two rows whose words differ in `differing`, more than h if they are not wanted.
  std::uint64_t distance(std::uint64_t differing, std::uint32_t a, std::uint32_t b) const;

  bool equal(std::uint32_t a, std::uint32_t b) const;

  bool has_repeat(std::uint32_t a, std::uint32_t b) const {
    return !repeats.empty() && ((repeats[a / 64] >> a % 64 | repeats[b / 64] >> b % 64) & 1) != 0;
  }

  const PairRows rows;
  std::uint64_t agree = 0;             // bits of a row's only word; 0 for rows of more
  std::vector<std::uint64_t> differ;   // the same, of each earlier block
  const std::uint64_t h;
  std::span<const std::uint64_t> repeats;  // a bit for each row without pairs; or empty

 private:
  bool wide_wanted(std::uint32_t a, std::uint32_t b) const;

  std::vector<Bits> agree_wide_;
  std::vector<Bits> differ_wide_;
};

class GroupPairs {
 public:
  GroupPairs(const Wish& wish, int level);

  // Pairs within groups of words and their rows, which may be put in another order; group i ends where
  // ends[i] says. kPaddingWords may be read behind the last one. If rows may repeat, a group of more than
  // `usual` rows is looked through for such before its words are compared.
  void add(std::uint64_t* words, std::uint32_t* rows, const std::uint32_t* ends,
           std::size_t groups, bool may_repeat, std::uint32_t usual,
           const std::function<bool()>& stopped);

  // Pairs of the rows from `first` to the end of its tile with all before them; of a group without
  // equal rows.
  void add_tile(const std::uint64_t* words, const std::uint32_t* rows, std::uint32_t size,
                std::uint32_t first, const std::function<bool()>& stopped);

  // Moves the first of equal rows to the front, in their order, and returns how many these are.
  std::uint32_t without_repeats(std::uint64_t* words, std::uint32_t* rows, std::uint32_t size);

  FoundPairs pairs;
  std::vector<Equal> equal;

 private:
  void look_for(std::uint64_t agree);
  void settle(std::uint64_t* words, std::uint32_t* rows, const std::uint32_t* ends,
              std::size_t group, bool may_repeat, const std::function<bool()>& stopped);
  bool repeats(const std::uint64_t* words, const std::uint32_t* rows, const Candidate* begin,
               const Candidate* end) const;
  void keep(const std::uint64_t* words, const std::uint32_t* rows, const Candidate* begin,
            const Candidate* end);
  void part(std::uint64_t* words, std::uint32_t* rows, std::uint32_t size,
            const std::function<bool()>& stopped);
  void direct(const std::uint64_t* words, const std::uint32_t* rows, std::uint32_t size,
              const std::function<bool()>& stopped);
  bool split(const std::uint64_t* words, const std::uint32_t* rows, std::uint32_t size,
             const std::function<bool()>& stopped);

  const Wish& wish_;
  const int level_;
  Near near_;
  Comparing compare_;
  std::uint64_t agree_;
  std::vector<std::uint64_t> differ_;
  Candidates candidates_;       // of groups side by side
  Candidates tile_candidates_;  // of one group
  std::vector<std::uint32_t> table_;
  std::size_t looked_at_ = 0;  // groups in which rows may have been equal
  std::size_t repeating_ = 0;  // of which comparing showed that some are
};

}  // namespace simindex
