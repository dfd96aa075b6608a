#include "methods/lookup.hpp"

#include <algorithm>

#include "cpu/levels.hpp"

namespace simindex {
namespace {

// Word 0 of rows, counting those that are touched.
class Touched {
 public:
  Touched(const SortedWords& table, std::size_t words) : rows_(table.rows), words_(words) {}

  std::uint64_t operator[](std::size_t row) {
    ++steps_;
    return rows_[row * words_];
  }

  std::uint16_t take_steps() {
    const unsigned steps = steps_;
    steps_ = 0;
    return static_cast<std::uint16_t>(steps);
  }

 private:
  const std::uint64_t* rows_;
  std::size_t words_;
  unsigned steps_ = 0;  // of a search at most 2 * 33 + kPatience
};

// First of rows lo .. hi - 1 that is not below `low`, or hi; at most floor(log2(hi - lo)) + 1 touches.
SIMINDEX_INLINE std::size_t bisect(Touched& rows, std::size_t lo, std::size_t hi,
                                   std::uint64_t low) {
  while (lo < hi) {
    const std::size_t middle = lo + (hi - lo) / 2;
    const bool before = rows[middle] < low;
    lo = before ? middle + 1 : lo;
    hi = before ? hi : middle;
  }
  return lo;
}

// Invariants: rows before lo are below `low`, those from hi on are not; below <= low <= above, whatever
// the rows' order, so that the share is from 0 to 1.
SIMINDEX_INLINE std::size_t interpolate(Touched& rows, std::size_t n, std::uint64_t low) {
  std::size_t lo = 0;
  std::size_t hi = n;
  std::uint64_t below = 0;
  std::uint64_t above = ~std::uint64_t{0};
  for (int patience = kPatience; lo < hi && patience > 0;) {
    const std::size_t size = hi - lo;
    const double share =
        static_cast<double>(low - below) / (static_cast<double>(above - below) + 1.0);
    const auto jump = static_cast<std::size_t>(share * static_cast<double>(size));
    const std::size_t at = lo + std::min(jump, size - 1);
    const std::uint64_t row = rows[at];
    if (row < low) {
      lo = at + 1;
      below = row;
    } else {
      hi = at;
      above = row;
    }
    patience -= hi - lo > size / 2;
  }
  return bisect(rows, lo, hi, low);
}

// First row from `first` on that is above `high`, or n.
SIMINDEX_INLINE std::size_t end_of(Touched& rows, std::size_t n, std::size_t first,
                                   std::uint64_t high) {
  std::size_t lo = first;
  std::size_t at = first;
  for (std::size_t gap = 1; at < n && rows[at] <= high; gap *= 2) {
    lo = at + 1;
    at += gap;
  }
  const std::size_t hi = std::min(at, n);
  // Nothing is above the highest word, and `high + 1` would be 0.
  if (high == ~std::uint64_t{0}) return hi;
  return bisect(rows, lo, hi, high + 1);
}

// Calls `found(i, word 0)` for each header.
template <typename Found>
SIMINDEX_INLINE void each(const Headers& headers, Found&& found) {
  for (std::size_t query = 0, i = 0; query < headers.m; ++query) {
    const std::uint64_t word = headers.queries[query * headers.words];
    const std::uint64_t* const flips = headers.flips + query * headers.stride;
    for (std::size_t flip = 0; flip < headers.k; ++flip) found(i++, word ^ flips[flip]);
  }
}

template <bool kInterpolated>
void search(const SortedWords& table, const Headers& headers, const Buckets& out) {
  const std::uint64_t tail =
      headers.header_bits == 64 ? 0 : ~std::uint64_t{0} >> headers.header_bits;
  Touched rows(table, table.words);
  each(headers, [&](std::size_t i, std::uint64_t word) {
    const std::uint64_t low = word & ~tail;
    const std::size_t first = kInterpolated ? interpolate(rows, table.n, low)
                                            : bisect(rows, 0, table.n, low);
    out.first[i] = static_cast<std::uint32_t>(first);
    out.steps[i] = rows.take_steps();
    out.end[i] = static_cast<std::uint32_t>(end_of(rows, table.n, first, word | tail));
    out.end_steps[i] = rows.take_steps();
  });
}

}  // namespace

void look_up_by_bisection(const SortedWords& table, const Headers& headers, const Buckets& out) {
  search<false>(table, headers, out);
}

void look_up_by_interpolation(const SortedWords& table, const Headers& headers,
                              const Buckets& out) {
  search<true>(table, headers, out);
}

void look_up_in_directory(std::span<const std::uint32_t> directory, int directory_bits,
                          std::size_t n, const Headers& headers, const Buckets& out) {
  const int narrower = directory_bits - headers.header_bits;
  const auto rows = static_cast<std::uint32_t>(n);
  each(headers, [&](std::size_t i, std::uint64_t word) {
    const std::size_t header = headers.header_bits == 0 ? 0 : word >> (64 - headers.header_bits);
    const std::uint32_t first = std::min(directory[header << narrower], rows);
    out.first[i] = first;
    out.end[i] = std::clamp(directory[(header + 1) << narrower], first, rows);
    out.steps[i] = 0;
    out.end_steps[i] = 0;
  });
}

}  // namespace simindex
