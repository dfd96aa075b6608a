// Finds the rows under a header of a sorted table, in the ways of the literature.
//
//     word 0 of x ^ f:   |<- t header bits ->|<----------- tail ----------->|
//     bucket of x ^ f:   rows first .. end - 1, whose word 0 is from `low` (the header, then zeros)
//                        to `high` (the header, then ones)
//
//     directory          first and end are two entries; no row is touched
//     binary             first by bisection, [PSM] section 6: at most floor(log2 n) + 1 rows
//     interpolation      first by jumps to where `low` would stand if the rows left were spread
//                        evenly, [MJS] and [PSM], experiments: on uniform rows about log2 log2 n
//
// Interpolation alone touches up to n rows of a skewed table. Here a jump that leaves more than half
// of the rows counts, and after kPatience of them the rest is bisected: at most
// floor(log2 n) + 1 + kPatience rows.
//
// The literature then scans to the first row of another header. `end` is found in fewer touches, at
// distances 0, 1, 3, 7, ... from `first`, and by bisection from there.
//
// One look-up at a time, nothing fetched ahead: this is for comparison. Searches that are to be fast
// go through probe.hpp. No order of rows and no entry of a directory leads outside of 0 .. n; of rows
// that are not sorted, first and end are some that satisfy first <= end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// Jumps that may leave more than half of the rows. In 10 M uniform rows 1 of 2,000 look-ups uses up 8 of
// them, with 4 it is 1 of 13, which touch 28 rows instead of 5; more than 8 only cost skewed tables.
inline constexpr int kPatience = 8;

struct Headers {
  const std::uint64_t* queries = nullptr;  // (m, words); word 0 is looked at
  std::size_t m = 0;
  std::size_t words = 1;
  const std::uint64_t* flips = nullptr;  // (k,) for all queries if stride is 0, else (m, stride)
  std::size_t k = 0;
  std::size_t stride = 0;
  int header_bits = 0;  // t, 0 .. 64
};

// Each has m * k values: query by query, in the order of its flips.
struct Buckets {
  std::span<std::uint32_t> first;
  std::span<std::uint32_t> end;
  std::span<std::uint16_t> steps;      // rows touched until `first` was known
  std::span<std::uint16_t> end_steps;  // rows touched after that, until `end` was
};

// rows (n, words), sorted by word 0; n below 2^32.
struct SortedWords {
  const std::uint64_t* rows = nullptr;
  std::size_t n = 0;
  std::size_t words = 1;
};

void look_up_by_bisection(const SortedWords& table, const Headers& headers, const Buckets& out);
void look_up_by_interpolation(const SortedWords& table, const Headers& headers, const Buckets& out);

// directory (2^directory_bits + 1,) of a table of n rows; header_bits is at most directory_bits.
void look_up_in_directory(std::span<const std::uint32_t> directory, int directory_bits,
                          std::size_t n, const Headers& headers, const Buckets& out);

}  // namespace simindex
