// Slice lists [ISSL section 2]: for each slice of the rows and each value, which rows have it there.
//
//   row      bits 0 .. b-1, bit 63 of word 0 first; slice i is bits i*w .. i*w+w-1
//   starts   (slices, 2^w + 1)   where the list of each value begins among a slice's numbers
//   numbers  (slices, n)         row numbers, list after list, ascending within each
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace simindex {

// Rows of `words` words each, fewer than 2^32 of them, in slices of `bits` bits: 8 or 16. So many
// rows as a block, from 1 to 2^24, are turned into columns at a time.
struct SlicedRows {
  std::span<const std::uint64_t> values;
  std::size_t words;
  int bits;
  std::size_t block_rows;

  std::size_t size() const { return words == 0 ? 0 : values.size() / words; }
  std::size_t slices() const { return words * 64 / static_cast<std::size_t>(bits); }
  std::size_t list_count() const { return std::size_t{1} << bits; }
};

// Builds the lists of some slices after those of others, in memory that it keeps: for each word 8
// bytes a row of a block and a counter a list, and 4 bytes a row of a block.
class SliceBuilder {
 public:
  // Of slices that lie within up to `words` words.
  SliceBuilder(const SlicedRows& rows, std::size_t words);
  SliceBuilder(SliceBuilder&&) noexcept;
  ~SliceBuilder();

  // All lists of `slices` slices from `first` on: counted, then filled [ISSL section 3].
  void lists(std::size_t first, std::size_t slices, std::span<std::uint32_t> starts,
             std::span<std::uint32_t> numbers);

 private:
  struct Own;
  std::unique_ptr<Own> own_;
};

// The same of any number of slices, which are split over threads, each with a builder of 4 words.
void slice_lists(const SlicedRows& rows, std::size_t first, std::size_t slices, std::size_t threads,
                 std::span<std::uint32_t> starts, std::span<std::uint32_t> numbers);

// Where the lists of one slice begin, and the number of rows. Takes 12 bytes for a row of a block.
void slice_starts(const SlicedRows& rows, std::size_t slice, std::span<std::uint32_t> starts);

// Places `begin` on of the numbers of one slice, as many as `numbers` holds: a part of a slice that
// is too large for the memory there is. Reads all rows, and takes 12 bytes for a row of a block and
// a counter a list. `starts` are those of `slice_starts`; with
// others the numbers are wrong, and no memory is touched beyond them.
void slice_part(const SlicedRows& rows, std::size_t slice, std::span<const std::uint32_t> starts,
                std::size_t begin, std::span<std::uint32_t> numbers);

}  // namespace simindex
