#include "pairs/found_pairs.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/sort.hpp"

namespace simindex {
namespace {

void sort_few(const FoundPairs& pairs, std::int64_t* a, std::int64_t* b, std::uint16_t* distance) {
  std::vector<std::uint64_t> rows(pairs.size);
  std::vector<std::uint64_t> bits(pairs.size);
  for (std::size_t i = 0; i < pairs.size; ++i) {
    const auto [low, high] = std::minmax(pairs.a[i], pairs.b[i]);
    rows[i] = std::uint64_t{low} << 32 | high;
    bits[i] = pairs.distance[i];
  }
  std::vector<std::uint64_t> sorted_rows(pairs.size);
  std::vector<std::uint64_t> sorted_bits(pairs.size);
  sort_pairs({rows.data(), bits.data(), pairs.size}, sorted_rows.data(), sorted_bits.data());
  for (std::size_t i = 0; i < pairs.size; ++i) {
    a[i] = static_cast<std::int64_t>(sorted_rows[i] >> 32);
    b[i] = static_cast<std::int64_t>(sorted_rows[i] & 0xffffffff);
    distance[i] = static_cast<std::uint16_t>(sorted_bits[i]);
  }
}

}  // namespace

void FoundPairs::reserve(std::size_t wanted) {
  if (wanted <= capacity_) return;
  const auto moved = [&]<class T>(Memory<T>& column) {
    Memory<T> larger = allocate<T>(wanted);
    std::copy_n(column.get(), size, larger.get());
    column = std::move(larger);
  };
  moved(a);
  moved(b);
  moved(distance);
  capacity_ = wanted;
}

void FoundPairs::append(const FoundPairs& other) {
  reserve(size + other.size);
  std::copy_n(other.a.get(), other.size, a.get() + size);
  std::copy_n(other.b.get(), other.size, b.get() + size);
  std::copy_n(other.distance.get(), other.size, distance.get() + size);
  size += other.size;
}

void sort_pairs_by_rows(const FoundPairs& pairs, std::size_t n, std::int64_t* a, std::int64_t* b,
                        std::uint16_t* distance) {
  // Beside many rows, a place for each would take longer than the pairs do.
  if (pairs.size < n / 16) return sort_few(pairs, a, b, distance);
  if (pairs.size == 0) return;
  // Pairs of one row become one run, each pair (b, distance) as one number, sorted by itself.
  Memory<std::uint64_t> place = allocate<std::uint64_t>(n);
  std::fill_n(place.get(), n, 0);
  for (std::size_t i = 0; i < pairs.size; ++i) ++place[std::min(pairs.a[i], pairs.b[i])];
  std::uint64_t start = 0;
  for (std::size_t row = 0; row < n; ++row) start += std::exchange(place[row], start);
  for (std::size_t i = 0; i < pairs.size; ++i) {
    const auto [low, high] = std::minmax(pairs.a[i], pairs.b[i]);
    b[place[low]++] = static_cast<std::int64_t>(std::uint64_t{high} << 16 | pairs.distance[i]);
  }
  std::uint64_t begin = 0;
  for (std::size_t row = 0; row < n; ++row) {
    const std::uint64_t end = place[row];
    if (begin == end) continue;
    std::sort(b + begin, b + end);
    for (; begin < end; ++begin) {
      distance[begin] = static_cast<std::uint16_t>(b[begin]);
      a[begin] = static_cast<std::int64_t>(row);
      b[begin] >>= 16;
    }
  }
}

}  // namespace simindex
