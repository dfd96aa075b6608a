// Pairs are sorted as numbers, by the lower row's digits and then the higher one's:
//
//   found      a[], b[], distance[]                                  columns of 4, 4 and 2 bytes
//   buckets    the lower row's other bits | higher row | distance    by its top bits; in the cache each
//   sorted     from the last digit up, between two columns           back and forth within a bucket
//   result     a[], b[], distance[]                                  columns of 8, 8 and 2 bytes
#include "pairs/found_pairs.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace simindex {
namespace {

constexpr int kDistanceBits = 16;
constexpr int kMostDigitBits = 11;                          // a cache line of each stream stays in the cache
constexpr std::size_t kBucketPairs = std::size_t{1} << 14;  // of two columns, 256 KB
constexpr std::size_t kFewPairs = 256;                      // are compared in less time than counted

// Room for more values behind those there are, or for wider ones instead. The system moves the pages of
// large arrays: new ones would have to be cleared, and took half of the time of 48 M pairs.
template <class To, class From>
Memory<To> enlarged(Memory<From> memory, std::size_t size) {
  void* larger = std::realloc(memory.get(), std::max<std::size_t>(size, 1) * sizeof(To));
  if (larger == nullptr) throw std::bad_alloc();
  static_cast<void>(memory.release());
  return Memory<To>(static_cast<To*>(larger));
}

// The bits of a pair's number.
struct Layout {
  Layout(std::size_t pairs, std::size_t n)
      : row_bits(static_cast<int>(std::bit_width(n | 1))) {
    const int wanted = std::min(static_cast<int>(std::bit_width(pairs / kBucketPairs)), kMostDigitBits);
    const int least = 2 * row_bits + kDistanceBits - 64;  // that leave the rest in one number
    rest_bits = row_bits - std::max({0, least, std::min(wanted, row_bits)});
    passes = (rest_bits + row_bits + kMostDigitBits - 1) / kMostDigitBits;
    digit_bits = (rest_bits + row_bits + passes - 1) / passes;
  }

  std::size_t buckets() const { return std::size_t{1} << (row_bits - rest_bits); }

  std::uint64_t number(std::uint64_t low, std::uint64_t high, std::uint64_t distance) const {
    const std::uint64_t rest = low & ((std::uint64_t{1} << rest_bits) - 1);
    return (rest << row_bits | high) << kDistanceBits | distance;
  }

  std::uint64_t digit(std::uint64_t number, int pass) const {
    return number >> (kDistanceBits + pass * digit_bits) & ((std::uint64_t{1} << digit_bits) - 1);
  }

  int row_bits;
  int rest_bits;   // of the lower row, behind those that choose a bucket
  int passes;
  int digit_bits;
};

// Numbers of a bucket in ascending order: in `to` if the passes are odd, else where they were.
void sort_bucket(const Layout& layout, std::span<std::uint64_t> numbers, std::uint64_t* to,
                 std::vector<std::size_t>& places) {
  const std::size_t size = numbers.size();
  std::uint64_t* from = numbers.data();
  if (size <= kFewPairs) {
    std::sort(from, from + size);
    if (layout.passes % 2 != 0) std::copy_n(from, size, to);
    return;
  }
  const std::size_t digits = std::size_t{1} << layout.digit_bits;
  places.assign(digits * static_cast<std::size_t>(layout.passes), 0);
  for (const std::uint64_t number : numbers)
    for (int pass = 0; pass < layout.passes; ++pass)
      ++places[digits * static_cast<std::size_t>(pass) + layout.digit(number, pass)];
  for (int pass = 0; pass < layout.passes; ++pass) {
    std::size_t* const place = places.data() + digits * static_cast<std::size_t>(pass);
    std::size_t start = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) start += std::exchange(place[digit], start);
    for (std::size_t i = 0; i < size; ++i) to[place[layout.digit(from[i], pass)]++] = from[i];
    std::swap(from, to);
  }
}

}  // namespace

void FoundPairs::reserve(std::size_t wanted) {
  if (wanted <= capacity_) return;
  a = enlarged<std::uint32_t>(std::move(a), wanted);
  b = enlarged<std::uint32_t>(std::move(b), wanted);
  distance = enlarged<std::uint16_t>(std::move(distance), wanted);
  capacity_ = wanted;
}

void FoundPairs::append(const FoundPairs& other) {
  reserve(size + other.size);
  std::copy_n(other.a.get(), other.size, a.get() + size);
  std::copy_n(other.b.get(), other.size, b.get() + size);
  std::copy_n(other.distance.get(), other.size, distance.get() + size);
  size += other.size;
}

SortedPairs sorted_by_rows(FoundPairs pairs, std::size_t n) {
  const std::size_t size = pairs.size;
  const Layout layout(size, n);
  std::vector<std::size_t> ends(layout.buckets());
  for (std::size_t i = 0; i < size; ++i)
    ++ends[std::min(pairs.a[i], pairs.b[i]) >> layout.rest_bits];
  std::size_t start = 0;
  for (std::size_t& end : ends) start += std::exchange(end, start);
  Memory<std::uint64_t> numbers = allocate<std::uint64_t>(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto [low, high] = std::minmax(pairs.a[i], pairs.b[i]);
    numbers[ends[low >> layout.rest_bits]++] = layout.number(low, high, pairs.distance[i]);
  }
  pairs.b.reset();
  Memory<std::uint64_t> others = enlarged<std::uint64_t>(std::move(pairs.a), size);
  Memory<std::uint16_t> distance = enlarged<std::uint16_t>(std::move(pairs.distance), size);

  std::vector<std::size_t> places;
  const std::uint64_t row_mask = (std::uint64_t{1} << layout.row_bits) - 1;
  start = 0;
  for (std::size_t bucket = 0; bucket < ends.size(); ++bucket) {
    const std::span here(numbers.get() + start, ends[bucket] - start);
    sort_bucket(layout, here, others.get() + start, places);
    std::uint64_t* const a = (layout.passes % 2 != 0 ? numbers : others).get();
    std::uint64_t* const b = (layout.passes % 2 != 0 ? others : numbers).get();
    for (; start < ends[bucket]; ++start) {
      const std::uint64_t number = b[start];
      distance[start] = static_cast<std::uint16_t>(number);
      b[start] = number >> kDistanceBits & row_mask;
      a[start] = bucket << layout.rest_bits | number >> kDistanceBits >> layout.row_bits;
    }
  }
  if (layout.passes % 2 == 0) numbers.swap(others);
  return {size, std::move(numbers), std::move(others), std::move(distance)};
}

}  // namespace simindex
