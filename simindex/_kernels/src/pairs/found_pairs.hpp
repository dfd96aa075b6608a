// Pairs of row numbers and their distances.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/memory.hpp"

namespace simindex {

// Columns that grow together.
class FoundPairs {
 public:
  void push(std::uint32_t first, std::uint32_t second, std::uint64_t bits) {
    if (size == capacity_) [[unlikely]]
      reserve(capacity_ < 1024 ? 1024 : capacity_ + capacity_ / 2);
    a[size] = first;
    b[size] = second;
    distance[size] = static_cast<std::uint16_t>(bits);
    ++size;
  }

  void append(const FoundPairs& other);
  [[gnu::noinline]] void reserve(std::size_t wanted);

  std::size_t size = 0;
  Memory<std::uint32_t> a;
  Memory<std::uint32_t> b;
  Memory<std::uint16_t> distance;

 private:
  std::size_t capacity_ = 0;
};

// Columns of `size`.
struct SortedPairs {
  std::size_t size;
  Memory<std::uint64_t> a;
  Memory<std::uint64_t> b;
  Memory<std::uint16_t> distance;
};

// Pairs of n rows by (a, b), a < b. Takes the 18 bytes of a pair of the result: the memory of what was found
// becomes columns of it.
SortedPairs sorted_by_rows(FoundPairs pairs, std::size_t n);

}  // namespace simindex
