#include "pairs/found_pairs.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "storage/sort.hpp"

namespace simindex {
namespace {

constexpr std::size_t kLongRun = 8;  // pairs of a row, on average

// Room for more values behind those there are. The system moves the pages of large arrays: new ones would
// have to be cleared, and took half of the time of 48 M pairs.
template <class T>
void enlarge(Memory<T>& memory, std::size_t size) {
  void* larger = std::realloc(memory.get(), size * sizeof(T));
  if (larger == nullptr) throw std::bad_alloc();
  static_cast<void>(memory.release());
  memory.reset(static_cast<T*>(larger));
}

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

// Where the pairs of each row begin, one run after the other; `row_of` says whose a pair is.
template <class RowOf>
Memory<std::uint64_t> starts(std::size_t pairs, std::size_t n, RowOf row_of) {
  Memory<std::uint64_t> place = allocate<std::uint64_t>(n);
  std::fill_n(place.get(), n, 0);
  for (std::size_t i = 0; i < pairs; ++i) ++place[row_of(i)];
  std::uint64_t start = 0;
  for (std::size_t row = 0; row < n; ++row) start += std::exchange(place[row], start);
  return place;
}

std::uint64_t packed(std::uint64_t row, std::uint64_t distance) { return row << 16 | distance; }

// Pairs of one lower row as one run of (higher row, distance), in any order; where runs end.
Memory<std::uint64_t> put_in_runs(const FoundPairs pairs, std::size_t n, std::int64_t* b) {
  Memory<std::uint64_t> place =
      starts(pairs.size, n, [&](std::size_t i) { return std::min(pairs.a[i], pairs.b[i]); });
  for (std::size_t i = 0; i < pairs.size; ++i) {
    const auto [low, high] = std::minmax(pairs.a[i], pairs.b[i]);
    b[place[low]++] = static_cast<std::int64_t>(packed(high, pairs.distance[i]));
  }
  return place;
}

// The same in order of the higher rows: put in runs of these first, the pairs of each then reach the runs
// of lower rows one after the other. Long runs take longer to sort. What `lower` has then is of no use.
Memory<std::uint64_t> put_in_order(FoundPairs pairs, std::size_t n, std::int64_t* lower,
                                   std::int64_t* b) {
  const std::size_t size = pairs.size;
  const Memory<std::uint64_t> ends =
      starts(size, n, [&](std::size_t i) { return std::max(pairs.a[i], pairs.b[i]); });
  Memory<std::uint64_t> place =
      starts(size, n, [&](std::size_t i) { return std::min(pairs.a[i], pairs.b[i]); });
  for (std::size_t i = 0; i < size; ++i) {
    const auto [low, high] = std::minmax(pairs.a[i], pairs.b[i]);
    lower[ends[high]++] = static_cast<std::int64_t>(packed(low, pairs.distance[i]));
  }
  pairs = {};
  std::uint64_t i = 0;
  for (std::size_t high = 0; high < n; ++high) {
    for (; i < ends[high]; ++i) {
      const auto low = static_cast<std::uint64_t>(lower[i]);
      b[place[low >> 16]++] = static_cast<std::int64_t>(packed(high, low & 0xffff));
    }
  }
  return place;
}

}  // namespace

void FoundPairs::reserve(std::size_t wanted) {
  if (wanted <= capacity_) return;
  enlarge(a, wanted);
  enlarge(b, wanted);
  enlarge(distance, wanted);
  capacity_ = wanted;
}

void FoundPairs::append(const FoundPairs& other) {
  reserve(size + other.size);
  std::copy_n(other.a.get(), other.size, a.get() + size);
  std::copy_n(other.b.get(), other.size, b.get() + size);
  std::copy_n(other.distance.get(), other.size, distance.get() + size);
  size += other.size;
}

void sort_pairs_by_rows(FoundPairs pairs, std::size_t n, std::int64_t* a, std::int64_t* b,
                        std::uint16_t* distance) {
  // Beside many rows, a place for each would take longer than the pairs do.
  if (pairs.size < n / 16) return sort_few(pairs, a, b, distance);
  if (pairs.size == 0) return;
  const bool runs_are_long = pairs.size > kLongRun * n;
  const Memory<std::uint64_t> ends = runs_are_long ? put_in_order(std::move(pairs), n, a, b)
                                                   : put_in_runs(std::move(pairs), n, b);
  std::uint64_t begin = 0;
  for (std::size_t row = 0; row < n; ++row) {
    const std::uint64_t end = ends[row];
    if (!runs_are_long) std::sort(b + begin, b + end);
    for (; begin < end; ++begin) {
      distance[begin] = static_cast<std::uint16_t>(b[begin]);
      a[begin] = static_cast<std::int64_t>(row);
      b[begin] >>= 16;
    }
  }
}

}  // namespace simindex
