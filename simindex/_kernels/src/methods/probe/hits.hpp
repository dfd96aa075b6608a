// What a search of a permuted table finds, and what finding it again in table 0 gives: sinks for
// `probe_into` and `swept_into`, of 64-bit rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>

#include "cpu/levels.hpp"
#include "cpu/memory.hpp"
#include "methods/matches.hpp"
#include "methods/probe/bphs.hpp"

namespace simindex {

// What is looked up in a table, as the columns stand in another one.
struct Header {
  std::uint64_t mask;
  std::uint64_t most_flips;
};

// The pairs that each table of a design is the first to find.
//
//   query     int64   (size,)   number of the query
//   distance  uint16  (size,)
//   of        uint32  (size,)   which of `words` the row is
//   words     uint64  (distinct,)  rows found; un-permuted once their table is done
//
// A row that many queries find, as those of a template do, is looked up in table 0 once: where a table
// has more finds than half its rows, its words are those of distinct rows.
class Hits {
 public:
  explicit Hits(Room* room) : room_(room) {}
  Hits(const Hits&) = delete;
  Hits& operator=(const Hits&) = delete;
  ~Hits() { give_room(); }

  // Before a table is searched: its rows, and the headers of the tables before it.
  void begin(const std::uint64_t* rows, std::span<const Header> earlier) {
    rows_ = rows;
    earlier_ = earlier;
    first_ = size;
    own_words_ = distinct;
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
    words[own_words_ + (size - first_)] = here;
    of[size] = row;
    query[size] = number;
    distance[size] = static_cast<std::uint16_t>(bits);
    size += !again;
  }

  // After a table of n rows was searched.
  void end(std::size_t n, std::span<const Rotation> inverse, int level) {
    std::size_t some = size - first_;
    if (some > n / 2)
      some = number_rows(n);
    else
      std::iota(of.get() + first_, of.get() + size, static_cast<std::uint32_t>(own_words_));
    distinct = own_words_ + some;
    if (distinct > ~std::uint32_t{0}) throw std::length_error("more than 2^32 rows found in a call");
    if (some == 0) return;
    Memory<std::uint64_t> plain = allocate<std::uint64_t>(some);
    permute(words.get() + own_words_, some, 1, inverse, plain.get(), level);
    std::copy_n(plain.get(), some, words.get() + own_words_);
  }

  // From now on the hits take no room.
  void give_room() {
    if (room_ != nullptr) room_->give(capacity_);
    room_ = nullptr;
  }

  std::size_t size = 0;
  std::size_t distinct = 0;
  Memory<std::uint64_t> words;
  Memory<std::uint32_t> of;
  Memory<std::int64_t> query;
  Memory<std::uint16_t> distance;

 private:
  // Keeps one word of each row found since `begin`; how many there are.
  std::size_t number_rows(std::size_t n) {
    constexpr std::uint32_t kNone = ~std::uint32_t{0};
    Memory<std::uint32_t> numbers = allocate<std::uint32_t>(n);
    std::fill_n(numbers.get(), n, kNone);
    std::size_t count = 0;
    for (std::size_t i = first_; i < size; ++i) {
      std::uint32_t& number = numbers[of[i]];
      if (number == kNone) {
        number = static_cast<std::uint32_t>(own_words_ + count);
        words[own_words_ + count++] = words[own_words_ + (i - first_)];
      }
      of[i] = number;
    }
    return count;
  }

  [[gnu::noinline]] void grow() {
    std::size_t more = std::max<std::size_t>(1024, capacity_);
    if (room_ != nullptr) more = room_->take_some(more);
    capacity_ += more;
    grow(words);
    grow(of);
    grow(query);
    grow(distance);
  }

  template <class T>
  void grow(Memory<T>& column) {
    Memory<T> moved = allocate<T>(capacity_);
    std::copy_n(column.get(), size, moved.get());
    column = std::move(moved);
  }

  Room* room_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t first_ = 0;      // hit of the table at hand
  std::size_t own_words_ = 0;  // where its words begin; at most first_
  const std::uint64_t* rows_ = nullptr;
  std::span<const Header> earlier_;
};

// Where rows with a word stand in table 0: `count` from `first` on, for they are neighbours.
class FoundRows {
 public:
  explicit FoundRows(std::size_t words)
      : first(allocate<std::uint32_t>(words)), count(allocate<std::uint32_t>(words)) {
    std::fill_n(first.get(), words, ~std::uint32_t{0});
    std::fill_n(count.get(), words, 0);
  }

  SIMINDEX_INLINE void take(std::int64_t word, std::uint32_t row, std::uint64_t, std::uint64_t) {
    first[static_cast<std::size_t>(word)] = std::min(first[static_cast<std::size_t>(word)], row);
    ++count[static_cast<std::size_t>(word)];
  }

  Memory<std::uint32_t> first;
  Memory<std::uint32_t> count;
};

}  // namespace simindex
