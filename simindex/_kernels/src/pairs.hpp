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
// 4. Equal rows of a group too large to compare directly are represented by the first of them; what it is
//    paired with, they are, too. So the work does not grow with the square of equal rows unless the
//    result does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory.hpp"

namespace simindex {

// Bits of a row: bit 0 is the top bit of word 0.
struct Bits {
  std::uint32_t first;
  std::uint32_t width;
};

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

// Pairs of row numbers, in columns that grow together.
class FoundPairs {
 public:
  void push(std::uint32_t first, std::uint32_t second, std::uint64_t bits) {
    if (size == capacity_) [[unlikely]]
      grow(capacity_ < 1024 ? 1024 : capacity_ + capacity_ / 2);
    a[size] = first;
    b[size] = second;
    distance[size] = static_cast<std::uint16_t>(bits);
    ++size;
  }

  void append(const FoundPairs& other);

  std::size_t size = 0;
  Memory<std::uint32_t> a;
  Memory<std::uint32_t> b;
  Memory<std::uint16_t> distance;

 private:
  [[gnu::noinline]] void grow(std::size_t wanted);

  std::size_t capacity_ = 0;
};

// Every pair of rows within h whose first agreeing blocks are the chosen ones, in no order and with its
// rows in any order. `poll` is called on the calling thread now and then; once it returns true the rest
// is left out. About 16 bytes a row of memory, 12 a thread for the largest part, and what is found.
FoundPairs block_pairs(const PairRows& rows, const BlockChoice& choice, std::uint64_t h,
                       std::size_t threads, int level, const std::function<bool()>& poll);

}  // namespace simindex
