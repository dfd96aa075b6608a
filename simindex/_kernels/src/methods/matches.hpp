// What a search found, as three columns that grow together.
//
//   query     int64   (size,)   number of the query, from 0
//   row       uint32  (size,)   row of the table
//   distance  uint16  (size,)   full Hamming distance
//
// Columns are malloc'ed so that they can grow without being initialised and be handed to numpy
// without a copy; capacity grows geometrically from one cache line, so a call that finds little
// allocates little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace simindex {

class Matches {
 public:
  Matches() = default;
  Matches(Matches&& other) noexcept { swap(other); }
  Matches& operator=(Matches&& other) noexcept {
    swap(other);
    return *this;
  }
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;
  ~Matches() {
    std::free(query);
    std::free(row);
    std::free(distance);
  }

  void push(std::int64_t query_number, std::uint32_t row_number, std::uint64_t bits) {
    if (size == capacity) [[unlikely]]
      reserve(capacity < 16 ? 16 : capacity + capacity / 2);
    query[size] = query_number;
    row[size] = row_number;
    distance[size] = static_cast<std::uint16_t>(bits);
    ++size;
  }

  // What a search finds; it does not need to know which bits differ.
  void take(std::int64_t query_number, std::uint32_t row_number, std::uint64_t bits,
            std::uint64_t) {
    push(query_number, row_number, bits);
  }

  // Room for `wanted` matches; throws std::bad_alloc and keeps what it holds.
  [[gnu::noinline]] void reserve(std::size_t wanted) {
    query = grown(query, wanted);
    row = grown(row, wanted);
    distance = grown(distance, wanted);
    capacity = wanted;
  }

  std::int64_t* query = nullptr;
  std::uint32_t* row = nullptr;
  std::uint16_t* distance = nullptr;
  std::size_t size = 0;
  std::size_t capacity = 0;

 private:
  void swap(Matches& other) noexcept {
    std::swap(query, other.query);
    std::swap(row, other.row);
    std::swap(distance, other.distance);
    std::swap(size, other.size);
    std::swap(capacity, other.capacity);
  }

  template <class T>
  static T* grown(T* column, std::size_t wanted) {
    auto* moved = static_cast<T*>(std::realloc(column, wanted * sizeof(T)));
    if (moved == nullptr) throw std::bad_alloc();
    return moved;
  }
};

}  // namespace simindex
