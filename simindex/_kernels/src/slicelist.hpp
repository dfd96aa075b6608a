// Slice lists [ISSL section 2]: for each slice of the rows and each value, which rows have it there.
//
//   row      bits 0 .. b-1, bit 63 of word 0 first; slice i is bits i*w .. i*w+w-1
//   starts   (slices, 2^w + 1)   where the list of each value begins among a slice's numbers
//   numbers  (slices, n)         row numbers, list after list, ascending within each
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// Rows of `words` words each, fewer than 2^32 of them, in slices of `bits` bits: 8 or 16.
struct SlicedRows {
  std::span<const std::uint64_t> values;
  std::size_t words;
  int bits;

  std::size_t size() const { return words == 0 ? 0 : values.size() / words; }
  std::size_t slices() const { return words * 64 / static_cast<std::size_t>(bits); }
  std::size_t list_count() const { return std::size_t{1} << bits; }
};

// All lists of the slices from `first` on, as many as `numbers` has rows of n for: counted, then
// filled [ISSL section 3]. Slices are split over threads. Each thread takes a counter a list while it
// runs.
void slice_lists(const SlicedRows& rows, std::size_t first, std::size_t slices, std::size_t threads,
                 std::span<std::uint32_t> starts, std::span<std::uint32_t> numbers);

// Where the lists of one slice begin, and the number of rows.
void slice_starts(const SlicedRows& rows, std::size_t slice, std::span<std::uint32_t> starts);

// Places `begin` on of the numbers of one slice, as many as `numbers` holds: a part of a slice that
// is too large for the memory there is. Reads all rows. `starts` are those of `slice_starts`; with
// others the numbers are wrong, and no memory is touched beyond them.
void slice_part(const SlicedRows& rows, std::size_t slice, std::span<const std::uint32_t> starts,
                std::size_t begin, std::span<std::uint32_t> numbers);

}  // namespace simindex
