#include "storage/rows.hpp"

#include <algorithm>
#include <cstring>

namespace simindex {
namespace {

// Gathers this many rows ahead: about a cache miss's time at one row a few nanoseconds.
constexpr std::size_t kAhead = 24;

// `Words` is the number of words of a row, or 0 to use `words`.
template <std::size_t Words, typename Index>
bool gather(std::span<const std::uint64_t> values, std::size_t words, std::span<const Index> order,
            std::span<std::uint64_t> out) {
  const std::size_t w = Words == 0 ? words : Words;
  if (w == 0) return true;
  const std::size_t n = values.size() / w;
  if (n == 0) return order.empty();
  bool all_there = true;
  // A negative row becomes a large one; rows that are not there read the first, and are reported.
  const auto place = [&](std::size_t i) {
    const auto row = static_cast<std::uint64_t>(order[i]);
    return values.data() + (row < n ? row : 0) * w;
  };
  std::uint64_t* to = out.data();
  for (std::size_t i = 0; i < order.size(); ++i, to += w) {
    if (i + kAhead < order.size()) {
      const std::uint64_t* const ahead = place(i + kAhead);
      __builtin_prefetch(ahead);
      // A longer row may lie on two cache lines; what follows, the processor fetches by itself.
      if (w > 1) __builtin_prefetch(ahead + std::min<std::size_t>(w - 1, 8));
    }
    all_there &= static_cast<std::uint64_t>(order[i]) < n;
    std::copy_n(place(i), w, to);
  }
  return all_there;
}

}  // namespace

void header_directory(std::span<const std::uint64_t> first_words, int header_bits,
                      std::span<std::uint32_t> directory) {
  const std::size_t n = first_words.size();
  std::fill(directory.begin(), directory.end(), 0);
  if (header_bits > 0) {
    // Each row writes the end of its bucket, the last one stays: no branch depends on the data.
    // Empty buckets then take over the end before them.
    const int shift = 64 - header_bits;
    for (std::size_t i = 0; i < n; ++i) {
      directory[(first_words[i] >> shift) + 1] = static_cast<std::uint32_t>(i + 1);
    }
    std::uint32_t end = 0;
    for (std::uint32_t& value : directory) value = end = std::max(end, value);
  }
  directory.back() = static_cast<std::uint32_t>(n);
}

bool take_rows(std::span<const std::uint64_t> values, std::size_t words,
               std::span<const std::int64_t> order, std::span<std::uint64_t> out) {
  switch (words) {
    case 1:
      return gather<1>(values, words, order, out);
    case 2:
      return gather<2>(values, words, order, out);
    case 4:
      return gather<4>(values, words, order, out);
    default:
      return gather<0>(values, words, order, out);
  }
}

bool take_at(std::span<const std::uint64_t> values, std::span<const std::uint32_t> rows,
             std::span<std::uint64_t> out) {
  return gather<1>(values, 1, rows, out);
}

bool take_offsets(std::span<const std::int64_t> offsets, std::span<const std::int64_t> order,
                  std::span<std::int64_t> out) {
  const std::size_t n = offsets.size() - 1;
  std::int64_t at = 0;
  out[0] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size()) {
      const auto ahead = static_cast<std::uint64_t>(order[i + kAhead]);
      __builtin_prefetch(offsets.data() + (ahead < n ? ahead : 0));
    }
    const auto row = static_cast<std::uint64_t>(order[i]);
    if (row >= n) return false;
    if (__builtin_add_overflow(at, offsets[row + 1] - offsets[row], &at)) return false;
    out[i + 1] = at;
  }
  return true;
}

void take_bytes(std::span<const std::int64_t> offsets, std::span<const std::uint8_t> data,
                std::span<const std::int64_t> order, std::span<std::uint8_t> out) {
  // Twice as far ahead the offsets are fetched, which say where the bytes lie.
  std::uint8_t* to = out.data();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + 2 * kAhead < order.size()) __builtin_prefetch(&offsets[order[i + 2 * kAhead]]);
    if (i + kAhead < order.size()) __builtin_prefetch(data.data() + offsets[order[i + kAhead]]);
    const auto begin = static_cast<std::size_t>(offsets[order[i]]);
    const auto size = static_cast<std::size_t>(offsets[order[i] + 1]) - begin;
    if (size > 0) std::memcpy(to, data.data() + begin, size);
    to += size;
  }
}

namespace {

// String i of some: false if there is no such string within the heap.
inline bool string_at(const Strings& strings, std::size_t i, std::span<const std::uint8_t>& found) {
  const auto row = static_cast<std::uint64_t>(strings.rows[i]);
  if (strings.offsets.size() < 2 || row >= strings.offsets.size() - 1) return false;
  const std::int64_t begin = strings.offsets[row];
  const std::int64_t end = strings.offsets[row + 1];
  if (begin < 0 || begin > end || static_cast<std::uint64_t>(end) > strings.data.size()) return false;
  found = strings.data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  return true;
}

}  // namespace

bool equal_bytes(const Strings& a, const Strings& b, std::span<std::uint8_t> equal) {
  std::span<const std::uint8_t> left;
  std::span<const std::uint8_t> right;
  for (std::size_t i = 0; i < equal.size(); ++i) {
    if (!string_at(a, i, left) || !string_at(b, i, right)) return false;
    equal[i] = left.size() == right.size() &&
               (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0);
  }
  return true;
}

}  // namespace simindex
