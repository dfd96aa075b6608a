// Arrays in and out of the bindings.
//
// `In<T, N>` accepts a C-contiguous array of exactly that dtype, writable or not (memory maps are
// not); with `.noconvert()` another dtype is a TypeError instead of a silent copy. `Fresh<T>` is
// memory that was not initialised and becomes a numpy array without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "cpu/memory.hpp"

namespace simindex {

template <typename T, std::size_t N>
using In = nanobind::ndarray<const T, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;

template <typename T, std::size_t N>
using Out = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<N>, nanobind::c_contig>;

template <typename T>
std::span<const T> as_span(const In<T, 1>& array) {
  return {array.data(), array.shape(0)};
}

template <typename T>
class Fresh {
 public:
  explicit Fresh(std::size_t size) : size_(size), data_(allocate<T>(size)) {}

  T* data() { return data_.get(); }
  std::span<T> span() { return {data_.get(), size_}; }

  // Gives the memory to numpy; the shape's product must be the size. Needs the GIL.
  template <std::size_t N>
  Out<T, N> release(const std::size_t (&shape)[N]) {
    T* const data = data_.release();
    nanobind::capsule owner(data, [](void* p) noexcept { FreeMemory()(p); });
    return Out<T, N>(data, N, shape, owner);
  }

  Out<T, 1> release() { return release({size_}); }

 private:
  std::size_t size_;
  Memory<T> data_;
};

// ValueError with the given sentence unless `held`.
inline void require(bool held, const char* sentence) {
  if (!held) throw std::invalid_argument(sentence);
}

// Whether all numbers are from 0 up to, and without, `end`.
inline bool all_below(std::span<const std::int64_t> numbers, std::size_t end) {
  return std::ranges::all_of(
      numbers, [end](std::int64_t number) { return static_cast<std::uint64_t>(number) < end; });
}

// Ends of n parts of an array: ascending, within it.
inline void require_parts(std::span<const std::int64_t> ends, std::size_t size,
                          const char* sentence) {
  require(!ends.empty() && ends.front() >= 0 && std::ranges::is_sorted(ends) &&
              static_cast<std::uint64_t>(ends.back()) <= size,
          sentence);
}

// Whether values of so many bytes may be read there.
inline bool aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

}  // namespace simindex
