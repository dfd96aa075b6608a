#include "storage/sort.hpp"

#include <algorithm>
#include <bit>

#include "cpu/memory.hpp"

// A row moves between three places; each pass splits one range of rows by one digit of the key:
//
//   input    keys[], payload[]          read once
//   scratch  {key, payload}[]           joined, so that a pass writes one stream a digit, not two
//   output   keys[], payload[]          where every range ends
//
//   input -> scratch -> output -> scratch -> ...   until the ranges are short, then by insertion
//
// Invariants: (1) a range keeps its bounds in all three places; (2) rows of a range agree in all bits
// above the digit it is split by; (3) a pass keeps the order of rows with equal digits.

namespace simindex {
namespace {

// Below this, insertion costs less than another pass.
constexpr std::size_t kInsertionRows = 32;
// A pass of 2^11 streams still keeps a cache line of each in the first-level cache.
constexpr int kMostDigitBits = 11;
constexpr int kFewestDigitBits = 8;
constexpr int kMostPasses = (64 + kFewestDigitBits - 1) / kFewestDigitBits;

struct Row {
  std::uint64_t key;
  std::uint64_t payload;
};

struct Input {
  SortInput rows;

  std::uint64_t key(std::size_t i) const { return rows.keys[i]; }
  Row row(std::size_t i) const { return {rows.keys[i], rows.payload ? rows.payload[i] : i}; }
};

struct Scratch {
  Row* rows;

  std::uint64_t key(std::size_t i) const { return rows[i].key; }
  Row row(std::size_t i) const { return rows[i]; }
  void put(std::size_t i, const Row& row) const { rows[i] = row; }
};

struct Output {
  std::uint64_t* keys;
  std::uint64_t* payload;

  std::uint64_t key(std::size_t i) const { return keys[i]; }
  Row row(std::size_t i) const { return {keys[i], payload[i]}; }
  void put(std::size_t i, const Row& row) const {
    keys[i] = row.key;
    payload[i] = row.payload;
  }
};

class Sorter {
 public:
  Sorter(std::size_t size, Output output)
      : rows_(allocate<Row>(size)),
        starts_(allocate<std::size_t>(kMostPasses << kMostDigitBits)),
        scratch_{rows_.get()},
        output_(output) {}

  template <typename From>
  void sort(const From& from, std::size_t begin, std::size_t end, int pass = 0) {
    if (end - begin <= kInsertionRows) {
      insert(from, begin, end);
      return;
    }
    if (is_sorted(from, begin, end)) {
      copy(from, begin, end);
      return;
    }
    std::uint64_t differing = 0;
    const std::uint64_t first = from.key(begin);
    for (std::size_t i = begin; i < end; ++i) differing |= from.key(i) ^ first;
    // The digit ends at the highest bit in which rows differ, so no pass leaves the range whole.
    const int bits = digit_bits(end - begin);
    const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - bits);
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    std::size_t* const starts = starts_.get() + (static_cast<std::size_t>(pass) << kMostDigitBits);
    std::fill_n(starts, mask + 1, 0);
    for (std::size_t i = begin; i < end; ++i) ++starts[(from.key(i) >> shift) & mask];
    std::size_t start = begin;
    for (std::size_t digit = 0; digit <= mask; ++digit) {
      const std::size_t count = starts[digit];
      starts[digit] = start;
      start += count;
    }
    const auto to = other(from);
    for (std::size_t i = begin; i < end; ++i) {
      const Row row = from.row(i);
      to.put(starts[(row.key >> shift) & mask]++, row);
    }
    if (shift == 0) {
      copy(to, begin, end);
      return;
    }
    // Every start has moved on to its digit's end. Short ranges side by side are left to one run of
    // insertion: rows of a higher digit stop it at the range's border.
    std::size_t short_begin = begin;
    start = begin;
    for (std::size_t digit = 0; digit <= mask; ++digit) {
      const std::size_t stop = starts[digit];
      if (stop - start > kInsertionRows) {
        insert(to, short_begin, start);
        sort(to, start, stop, pass + 1);
        short_begin = stop;
      }
      start = stop;
    }
    insert(to, short_begin, end);
  }

 private:
  Scratch other(const Input&) const { return scratch_; }
  Output other(const Scratch&) const { return output_; }
  Scratch other(const Output&) const { return scratch_; }

  // Passes of equal width, as few as leave one or two rows to a digit if keys are uniform.
  static int digit_bits(std::size_t size) {
    const int wanted = static_cast<int>(std::bit_width(size)) - 1;
    const int passes = (wanted + kMostDigitBits - 1) / kMostDigitBits;
    return std::clamp((wanted + passes - 1) / passes, kFewestDigitBits, kMostDigitBits);
  }

  template <typename From>
  static bool is_sorted(const From& from, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (from.key(i - 1) > from.key(i)) return false;
    }
    return true;
  }

  template <typename From>
  void copy(const From& from, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) output_.put(i, from.row(i));
  }

  void copy(const Output&, std::size_t, std::size_t) const {}

  // Reads row i before it writes place i, so `from` may be the output itself.
  template <typename From>
  void insert(const From& from, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      const Row row = from.row(i);
      std::size_t at = i;
      for (; at > begin && output_.key(at - 1) > row.key; --at) {
        output_.put(at, output_.row(at - 1));
      }
      output_.put(at, row);
    }
  }

  Memory<Row> rows_;
  Memory<std::size_t> starts_;
  Scratch scratch_;
  Output output_;
};

}  // namespace

void sort_pairs(const SortInput& input, std::uint64_t* keys, std::uint64_t* payload) {
  Sorter(input.size, Output{keys, payload}).sort(Input{input}, 0, input.size);
}

}  // namespace simindex
