// All pairs of rows within h that agree on some blocks of their bits.
//
//   blocks      |    0    |    1    |    2    |    3    |    4    |      some bits of a row each
//   a ^ b       |  0 0 0  |  0 1 0  |  0 0 0  |  1 0 0  |  0 0 0  |
//   agreeing         0                   2                    4          first two: {0, 2}
//
// Rows within h differ in at most h blocks. So of G blocks, a pair agrees on G - h at least, and the union
// over all choices of G - h blocks, of the pairs whose first G - h agreeing blocks are the chosen ones, is
// every pair within h exactly once.
//
//   rows -> records (word, row, key)   partitioned by the key's upper digit    a pass over memory
//        -> words, rows of a part      by its lower digit, in the cache        groups: equal keys
//        -> candidates                 words of a group within h
//        -> pairs                      that agree and differ where they shall
//
// Invariants
// 1. Rows that agree on the chosen blocks have the same key. Equal keys alone prove nothing.
// 2. The distance of two words is at most that of their rows: a row of one word is its own word, and
//    otherwise it is the exclusive or of all words of the row, each rotated.
// 3. Rows keep their order within a part and a group.
// 4. Equal rows are represented by the first of them, from the first pass on; what it is paired with, they
//    are, too. So the work does not grow with the square of equal rows unless the result does.
//
// What bounds it, of n rows of 64 bits, h = 3, in 4 passes over blocks of 16 bits, on a core that moves
// 10 GB/s and compares 8 words in 0.7 ns:
//
//   a pass moves   8 n to count, 8 n read and 16 n written to partition, 16 n read in parts     4.8 ns a row
//   and compares   n / 65536 / 2 words with each: 8 at 1 M, 76 at 10 M                       0.7, 6.7 ns
//   at 100 M       763 would take 67 ns; cut by 4 runs of 12 bits, a row moves 4 times in the cache: 16 ns
//
//   rows    bound        measured, one core, others working beside it
//   1 M     0.02 s       0.07 s
//   10 M    0.46 s       0.96 s; 1.3 s while memory was busy
//   100 M   8.3 s        31 s, 2.7 GiB resident
//
// Of the time for 10 M, partitioning takes 35 %, comparing 30 %, placing rows within parts 19 %, and the
// system's clearing of pages 9 %.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pairs/found_pairs.hpp"

namespace simindex {

// Bits of a row: bit 0 is the top bit of word 0.
struct Bits {
  std::uint32_t first;
  std::uint32_t width;
};

// Calls part(word, mask) for each word of a row that holds some of the bits, until one returns false.
template <class Part>
bool each_part(const Bits& bits, Part part) {
  for (std::uint32_t at = bits.first; at < bits.first + bits.width;) {
    const std::uint32_t width = std::min(64 - at % 64, bits.first + bits.width - at);
    if (!part(std::size_t{at / 64}, (~std::uint64_t{0} << (64 - width)) >> at % 64)) return false;
    at += width;
  }
  return true;
}

struct PairRows {
  const std::uint64_t* rows;  // (n, words)
  std::size_t n;              // below 2^32
  std::size_t words;
};

// One choice of blocks, ascending numbers.
struct BlockChoice {
  std::span<const Bits> blocks;
  std::span<const std::uint32_t> agreeing;
};

// How a search is carried out. `poll` is called on the calling thread now and then; once it returns true
// the rest is left out; so it is soon after more than `most` pairs are found.
struct PairSearch {
  std::uint64_t h;
  std::size_t threads;
  int level;
  std::uint64_t most;
  std::function<bool()> poll;
};

// A row and the first of those equal to it.
struct Equal {
  std::uint32_t first;
  std::uint32_t row;
};

// Pairs of distinct rows, each the first of its equals; and the rows that equal an earlier one, those of
// one `first` side by side and ascending. In no other order; a pair's rows in any order.
struct DistinctPairs {
  FoundPairs pairs;
  std::vector<Equal> equal;
  bool too_many = false;
};

// The pairs within h whose first agreeing blocks are the chosen ones.
DistinctPairs block_pairs(const PairRows& rows, const BlockChoice& choice,
                          const PairSearch& search);

// Every pair within h, from all choices of `agreeing` blocks; of none, all are compared with all. To be
// exact, `agreeing` is at most the number of blocks less h. 16 bytes a row of memory, 12 a thread for the
// largest part, and what is found.
DistinctPairs all_pairs(const PairRows& rows, std::span<const Bits> blocks, std::size_t agreeing,
                        const PairSearch& search);

// To pairs of distinct rows adds those of the rows equal to them; and, if `with_equal`, of equal rows
// themselves. Returns how many that makes; nothing is added if they are more than `most`.
double expand(DistinctPairs& found, std::size_t n, bool with_equal, const PairSearch& search);

// Equal rows by (first, row). Columns of the size of `equal`.
void sort_equal(const std::vector<Equal>& equal, std::size_t n, std::int64_t* first,
                std::int64_t* row);

}  // namespace simindex
