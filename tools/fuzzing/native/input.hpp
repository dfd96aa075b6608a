// A fuzzer's bytes as what kernels take: numbers in a range, words near each other, arrays.
//
// Every array has exactly its size on the heap, so that AddressSanitizer sees the first byte beyond it.
// Bytes that are not there any more are 0: a short input is a small call.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "cpu/levels.hpp"

// What must hold of an answer, whatever the bytes were.
#define REQUIRE(held) \
  if (!(held)) __builtin_trap()

namespace simindex::fuzzing {

template <class T>
struct Array {
  explicit Array(std::size_t n) : size(n), data(static_cast<T*>(std::malloc(n * sizeof(T) + !n))) {}
  Array(Array&& other) noexcept : size(other.size), data(std::exchange(other.data, nullptr)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(size, other.size);
    std::swap(data, other.data);
    return *this;
  }
  ~Array() { std::free(data); }
  T& operator[](std::size_t i) { return data[i]; }
  operator std::span<T>() { return {data, size}; }
  operator std::span<const T>() const { return {data, size}; }

  std::size_t size;
  T* data;
};

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::uint8_t byte() { return at_ == end_ ? 0 : *at_++; }
  bool one_in(unsigned n) { return byte() % n == n - 1; }

  template <class T>
  T raw() {
    T value{};
    const std::size_t size = left() < sizeof(T) ? left() : sizeof(T);
    std::memcpy(&value, at_, size);
    at_ += size;
    return value;
  }

  // From least to most, of one byte where that suffices.
  std::size_t in(std::size_t least, std::size_t most) {
    const std::size_t values = most - least + 1;
    return least + (values <= 256 ? byte() : raw<std::uint32_t>()) % values;
  }

  // Often one of eight words with a bit flipped, so that distances are small and rows repeat.
  std::uint64_t word() {
    const std::uint8_t kind = byte();
    if (kind >= 208) return raw<std::uint64_t>();
    const std::uint64_t base = (kind & 7) * 0x9E3779B97F4A7C15u;
    return kind >= 128 ? base ^ std::uint64_t{1} << byte() % 64 : base;
  }

  // A row number that is often too large.
  std::uint32_t offset(std::size_t n) {
    const std::uint8_t kind = byte();
    if (kind >= 240) return raw<std::uint32_t>();
    return kind < 200 ? kind % static_cast<std::uint32_t>(n + 2) : ~std::uint32_t{0} - kind;
  }

  float number() {
    const std::uint8_t kind = byte();
    if (kind >= 240) return raw<float>();
    return (static_cast<float>(kind) - 120) / 16;
  }

  Array<std::uint64_t> words(std::size_t n) {
    Array<std::uint64_t> made(n);
    for (std::size_t i = 0; i < n; ++i) made[i] = word();
    return made;
  }

  Array<float> numbers(std::size_t n) {
    Array<float> made(n);
    for (std::size_t i = 0; i < n; ++i) made[i] = number();
    return made;
  }

  int level() { return static_cast<int>(in(0, static_cast<std::size_t>(widest_level()))); }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

inline std::uint64_t distance(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) sum += static_cast<std::uint64_t>(std::popcount(a[i] ^ b[i]));
  return sum;
}

}  // namespace simindex::fuzzing
