// What a search found, as three columns that grow together.
//
//   query     int64   (size,)   number of the query, from 0
//   row       uint32  (size,)   row of the table
//   distance  uint16  (size,)   full Hamming distance
//
// Columns are malloc'ed so that they can grow without being initialised and be handed to numpy
// without a copy; capacity grows geometrically from one cache line, so a call that finds little
// allocates little. Where a call has a `room`, the capacity is taken from it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "methods/room.hpp"

namespace simindex {

// Which of the rows within h a query takes, of 64-bit rows: those whose differing bits cost `most`
// together, or less. A stranger differs in any bits, a near-duplicate in those that are near their
// sign, which cost little. At 10 M rows, 70 strangers of a query were within 16 bits under its likely
// headers, and took 1.7 us each to be rejected by their sketches.
struct Likely {
  const std::uint8_t* costs = nullptr;  // (m, 64): of each bit of a query, bit 63 first
  std::uint32_t most = 0;

  // Before rows are compared with a query.
  void ask_for(std::int64_t query) const {
    __builtin_prefetch(costs + 64 * static_cast<std::size_t>(query));
  }

  bool takes(std::int64_t query, std::uint64_t differing) const {
    const std::uint8_t* of = costs + 64 * static_cast<std::size_t>(query);
    std::uint32_t sum = 0;
    for (; differing != 0; differing &= differing - 1) sum += of[63 - std::countr_zero(differing)];
    return sum <= most;
  }
};

class Matches {
 public:
  Matches() = default;
  explicit Matches(Room* shared, const Likely* taken = nullptr) : room(shared), likely(taken) {}
  Matches(Matches&& other) noexcept { swap(other); }
  Matches& operator=(Matches&& other) noexcept {
    swap(other);
    return *this;
  }
  Matches(const Matches&) = delete;
  Matches& operator=(const Matches&) = delete;
  ~Matches() {
    if (room != nullptr && query != nullptr) room->give(capacity);
    std::free(query);
    std::free(row);
    std::free(distance);
  }

  void push(std::int64_t query_number, std::uint32_t row_number, std::uint64_t bits) {
    if (size == capacity) [[unlikely]]
      grow();
    query[size] = query_number;
    row[size] = row_number;
    distance[size] = static_cast<std::uint16_t>(bits);
    ++size;
  }

  // What a search finds.
  void take(std::int64_t query_number, std::uint32_t row_number, std::uint64_t bits,
            std::uint64_t differing) {
    if (likely != nullptr && !likely->takes(query_number, differing)) return;
    push(query_number, row_number, bits);
  }

  // Memory for `wanted` matches, more than it has; throws std::bad_alloc and keeps what it holds.
  void reserve(std::size_t wanted) {
    if (room != nullptr) room->take(wanted - capacity);
    resize(wanted, wanted - capacity);
  }

  // Leaves the room that it takes to a copy of what it holds, which takes none yet.
  void leave_room_to(Matches& copy) {
    if (room != nullptr) room->give(capacity - copy.capacity);
    copy.room = std::exchange(room, nullptr);
  }

  // Gives memory back beyond what is used; the matches then take as much of the room as they are.
  void trim() {
    if (size != 0 && capacity - size > size / 8) resize(size, 0);
    if (room != nullptr && query != nullptr) room->give(capacity - size);
  }

  std::int64_t* query = nullptr;
  std::uint32_t* row = nullptr;
  std::uint16_t* distance = nullptr;
  std::size_t size = 0;
  std::size_t capacity = 0;
  Room* room = nullptr;
  const Likely* likely = nullptr;  // while it is filled, if not all rows are taken

 private:
  [[gnu::noinline]] void grow() {
    std::size_t more = capacity < 16 ? 16 - capacity : capacity / 2;
    if (room != nullptr) more = room->take_some(more);
    resize(capacity + more, more);
  }

  // `taken` of the room go back to it where memory is refused.
  void resize(std::size_t wanted, std::size_t taken) {
    try {
      query = grown(query, wanted);
      row = grown(row, wanted);
      distance = grown(distance, wanted);
    } catch (const std::bad_alloc&) {
      if (room != nullptr) room->give(taken);
      throw;
    }
    // What was given up by growing smaller is given back.
    if (room != nullptr && wanted < capacity) room->give(capacity - wanted);
    capacity = wanted;
  }

  void swap(Matches& other) noexcept {
    std::swap(query, other.query);
    std::swap(row, other.row);
    std::swap(distance, other.distance);
    std::swap(size, other.size);
    std::swap(capacity, other.capacity);
    std::swap(room, other.room);
    std::swap(likely, other.likely);
  }

  template <class T>
  static T* grown(T* column, std::size_t wanted) {
    auto* moved = static_cast<T*>(std::realloc(column, wanted * sizeof(T)));
    if (moved == nullptr) throw std::bad_alloc();
    return moved;
  }
};

}  // namespace simindex
