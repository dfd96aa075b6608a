// The lists of a query: which they are, what it costs to follow them, and following them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/growing.hpp"
#include "cpu/levels.hpp"
#include "methods/issl/issl.hpp"

namespace simindex {

// All values of w bits with at most max_error bits set, fewest bits first: the error array of [ISSL].
struct Errors {
  Errors(int width, int max_error) {
    static const Sorted eight(8), sixteen(16);
    const Sorted& sorted = width == 8 ? eight : sixteen;
    flips = sorted.values.data();
    bits = sorted.bits.data();
    upto = sorted.upto;
    size = upto[max_error];
  }
  const std::uint16_t* flips;
  const std::uint8_t* bits;  // set in each of them
  const std::size_t* upto;  // how many have so many bits or fewer
  std::size_t size;

 private:
  struct Sorted {
    explicit Sorted(int width) {
      for (int set = 0; set <= width; ++set) {
        for (std::uint32_t value = 0; value < std::uint32_t{1} << width; ++value)
          if (std::popcount(value) == set) values.push_back(static_cast<std::uint16_t>(value));
        upto[set] = values.size();
        bits.resize(values.size(), static_cast<std::uint8_t>(set));
      }
    }
    std::vector<std::uint16_t> values;
    std::vector<std::uint8_t> bits;
    std::size_t upto[17] = {};
  };
};

// Slices that are looked at: the first `full` with all errors, then one with fewer or none.
struct Visit {
  std::size_t full = 0;
  std::size_t more = 0;  // errors tried on slice `full`; 0 if it is not looked at
  std::size_t lists(const Errors& errors) const { return full * errors.size + more; }
};

// Expected costs, in quarters of a nanosecond: only which way is taken depends on them.
inline constexpr std::uint64_t kListCost = 40;
inline constexpr std::uint64_t kNumberCost = 16;
inline constexpr std::uint64_t kWordCost = 3;

// Row numbers that may be followed for a query before its rows are compared instead.
inline std::uint64_t most_followed(const SliceTable& table, std::size_t lists) {
  const std::uint64_t by_rows = table.n * table.words * kWordCost;
  const std::uint64_t by_lists = lists * kListCost;
  if (by_lists >= by_rows) return 0;
  const std::uint64_t memory = std::max<std::uint64_t>(std::uint64_t{1} << 22, table.n / 2);
  return std::min((by_rows - by_lists) / kNumberCost, memory);
}

// The row numbers of lists in their order.
class Listed {
 public:
  explicit Listed(std::size_t n) : n_(n) {}

  void clear() { size = damaged = 0; }
  SIMINDEX_INLINE void take(const std::uint32_t* number, const std::uint32_t* end, std::uint32_t) {
    const std::size_t count = static_cast<std::size_t>(end - number);
    rows.reserve(size + count);
    std::uint32_t* const to = rows.data() + size;
    std::uint64_t beyond = 0;
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = number[i];
      beyond += number[i] >= n_;
    }
    size += count;
    damaged += beyond;
  }

  Growing<std::uint32_t> rows;
  std::size_t size = 0;
  std::uint64_t damaged = 0;

 private:
  std::size_t n_;
};

inline std::uint32_t slice_of(const SliceTable& table, const std::uint64_t* query, std::size_t slice) {
  const std::size_t bit = slice * static_cast<std::size_t>(table.width);
  return static_cast<std::uint32_t>(query[bit / 64] << (bit % 64) >> (64 - table.width));
}

enum class Followed { kAll, kTooMany, kDamaged };

// Gives the lists of a query to into.take(first, end, w - e), or stops where they hold more than `most`
// numbers; `followed` counts them.
template <class Into>
Followed follow(const SliceTable& table, const std::uint64_t* query, const Errors& errors,
                const Visit& visit, std::uint64_t most, std::uint64_t& followed, Into& into) {
  constexpr std::size_t kRing = 64;
  constexpr std::size_t kStartsAhead = 48;  // lists between asking for a start and following
  constexpr std::size_t kListsAhead = 20;   // and between asking for a list and following it
  struct Visited {
    const std::uint32_t* start;
    const std::uint32_t* first;
    const std::uint32_t* end;
    const std::uint32_t* numbers;
    std::uint32_t gain;
  } ring[kRing];
  const std::size_t lists = visit.lists(errors);
  const std::size_t values = std::size_t{1} << table.width, n = table.n;
  const auto width = static_cast<std::uint32_t>(table.width);
  const std::uint32_t* starts = table.starts;
  const std::uint32_t* numbers = table.numbers;
  std::size_t slice = 0, flip = 0;
  std::uint32_t value = slice_of(table, query, 0);
  std::uint64_t all = 0;
  followed = 0;
  for (std::size_t i = 0; i < lists + kStartsAhead; ++i) {
    if (i < lists) {
      Visited& at = ring[i % kRing];
      at.start = starts + (value ^ errors.flips[flip]);
      at.numbers = numbers;
      at.gain = width - errors.bits[flip];
      __builtin_prefetch(at.start);
      if (++flip == errors.size) {
        flip = 0;
        starts += values + 1;
        numbers += n;
        if (++slice < table.slices) value = slice_of(table, query, slice);
      }
    }
    if (i >= kStartsAhead - kListsAhead && i - (kStartsAhead - kListsAhead) < lists) {
      Visited& at = ring[(i - (kStartsAhead - kListsAhead)) % kRing];
      const std::size_t end = std::min<std::size_t>(at.start[1], n);
      const std::size_t first = std::min<std::size_t>(at.start[0], end);
      at.first = at.numbers + first;
      at.end = at.numbers + end;
      all += end - first;
      if (all > most) return Followed::kTooMany;
      table.touch_numbers(at.first, end - first);
      // Most lists are of one to three lines.
      __builtin_prefetch(at.first);
      __builtin_prefetch(at.first + std::min<std::size_t>(16, end - first - (end > first)));
      __builtin_prefetch(at.end - (end > first));
    }
    if (i >= kStartsAhead) {
      const Visited& at = ring[(i - kStartsAhead) % kRing];
      const std::uint32_t* number = at.first;
      for (; at.end - number > 64; number += 64) {
        for (std::size_t line = 16; line <= 64; line += 16) __builtin_prefetch(number + 32 + line);
        into.take(number, number + 64, at.gain);
      }
      into.take(number, at.end, at.gain);
    }
  }
  followed = all;
  return into.damaged != 0 ? Followed::kDamaged : Followed::kAll;
}

}  // namespace simindex
