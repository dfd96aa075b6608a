// What a search of a permuted table finds, and what finding it again in table 0 gives: sinks for
// `probe_into` and `swept_into`, of 64-bit rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "bphs.hpp"
#include "cpu.hpp"
#include "matches.hpp"
#include "memory.hpp"

namespace simindex {

// What is looked up in a table, as the columns stand in another one.
struct Header {
  std::uint64_t mask;
  std::uint64_t most_flips;
};

// The pairs that table `number` of a design is the first to find.
//
//   word      uint64  (size,)   the row; permuted as the table is until `unpermuted`
//   query     int64   (size,)   number of the query
//   distance  uint16  (size,)
class Hits {
 public:
  // Before a table is searched: its rows, and the headers of the tables before it.
  void begin(const std::uint64_t* rows, std::span<const Header> earlier) {
    rows_ = rows;
    earlier_ = earlier;
  }

  // Most finds of a later table have been found before, in no order that could be foreseen: so each
  // is written, and kept by moving the end.
  SIMINDEX_INLINE void take(std::int64_t number, std::uint32_t row, std::uint64_t bits,
                            std::uint64_t differing) {
    if (size == capacity_) [[unlikely]]
      grow();
    const std::uint64_t here = rows_[row];
    bool again = row != 0 && rows_[row - 1] == here;
    for (const Header& header : earlier_) {
      // What is left when as many bits are taken away as may differ.
      std::uint64_t left = differing & header.mask;
      for (std::uint64_t i = 0; i < header.most_flips; ++i) left &= left - (left != 0);
      again |= left == 0;
    }
    word[size] = here;
    query[size] = number;
    distance[size] = static_cast<std::uint16_t>(bits);
    size += !again;
  }

  // After it was searched: the words found since there were `before`.
  void unpermute(std::size_t before, std::span<const Rotation> inverse, int level) {
    const std::size_t n = size - before;
    if (n == 0) return;
    Memory<std::uint64_t> plain = allocate<std::uint64_t>(n);
    permute(word.get() + before, n, 1, inverse, plain.get(), level);
    std::copy_n(plain.get(), n, word.get() + before);
  }

  std::size_t size = 0;
  Memory<std::uint64_t> word;
  Memory<std::int64_t> query;
  Memory<std::uint16_t> distance;

 private:
  [[gnu::noinline]] void grow() {
    capacity_ = std::max<std::size_t>(1024, 2 * capacity_);
    grow(word);
    grow(query);
    grow(distance);
  }

  template <class T>
  void grow(Memory<T>& column) {
    Memory<T> moved = allocate<T>(capacity_);
    std::copy_n(column.get(), size, moved.get());
    column = std::move(moved);
  }

  std::size_t capacity_ = 0;
  const std::uint64_t* rows_ = nullptr;
  std::span<const Header> earlier_;
};

// The rows of table 0 that hits are, once for each row.
class FoundRows {
 public:
  FoundRows(const std::uint64_t* rows, const Hits& hits, Matches& out)
      : rows_(rows), hits_(hits), out_(out) {}

  SIMINDEX_INLINE void take(std::int64_t hit, std::uint32_t row, std::uint64_t, std::uint64_t) {
    const auto number = static_cast<std::size_t>(hit);
    recovered += row == 0 || rows_[row - 1] != rows_[row];
    out_.push(hits_.query[number], row, hits_.distance[number]);
  }

  std::size_t recovered = 0;  // hits that have a row

 private:
  const std::uint64_t* rows_;
  const Hits& hits_;
  Matches& out_;
};

}  // namespace simindex
