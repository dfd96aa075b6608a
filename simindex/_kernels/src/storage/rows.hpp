// Rows of a sorted table: where each header begins, and gathering rows in another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// Header directory of ascending first words: `directory[v]` becomes the first row whose top
// `header_bits` (0 to 32) bits are >= v, and the last of its 2^header_bits + 1 values the number of
// rows, which must be below 2^32. Words that do not ascend give a wrong directory, but still one
// that rises from 0 and ends at the number of rows.
void header_directory(std::span<const std::uint64_t> first_words, int header_bits,
                      std::span<std::uint32_t> directory);

// out[i] = values[order[i]], rows of `words` words. False if a row is not there; `out` is then
// unspecified. Rows are fetched ahead, so many cache misses are in flight at once.
bool take_rows(std::span<const std::uint64_t> values, std::size_t words,
               std::span<const std::int64_t> order, std::span<std::uint64_t> out);

// out[i] = values[rows[i]]. False if a row is not there.
bool take_at(std::span<const std::uint64_t> values, std::span<const std::uint32_t> rows,
             std::span<std::uint64_t> out);

// Offsets of the strings of a heap taken in `order`; `out` has one more value than `order`. False if
// a string is not there or all together are longer than an offset can say. `offsets` must hold
// (heap_offsets.hpp).
bool take_offsets(std::span<const std::int64_t> offsets, std::span<const std::int64_t> order,
                  std::span<std::int64_t> out);

// The bytes that belong to `take_offsets`, whose last offset is the size of `out`.
void take_bytes(std::span<const std::int64_t> offsets, std::span<const std::uint8_t> data,
                std::span<const std::int64_t> order, std::span<std::uint8_t> out);

// Some strings of a heap, in any order. Nothing is assumed of the offsets.
struct Strings {
  std::span<const std::int64_t> offsets;
  std::span<const std::uint8_t> data;
  std::span<const std::int64_t> rows;
};

// equal[i] = 1 where string i of `a` has the bytes of string i of `b`, else 0; both name as many.
// False if a string is not there or its offsets leave its heap; `equal` is then unspecified. Only
// offsets of the strings named are read, so the cost does not grow with the heap.
bool equal_bytes(const Strings& a, const Strings& b, std::span<std::uint8_t> equal);

}  // namespace simindex
