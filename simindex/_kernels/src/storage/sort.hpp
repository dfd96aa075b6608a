// Stable sorting of rows by a 64-bit key, from the key's top digit down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// What a sort reads: keys, and a payload of each. Without a payload it is the row's number.
struct SortInput {
  const std::uint64_t* keys;
  const std::uint64_t* payload;  // or null
  std::size_t size;
};

// Writes the rows in ascending order of key, equal keys in the order they had. `keys` and `payload`
// have the input's size and share no memory with it. Allocates 16 bytes a row while it runs, the
// size of what it writes. Time is linear: at most 8 passes over a row, 2 for uniform keys.
void sort_pairs(const SortInput& input, std::uint64_t* keys, std::uint64_t* payload);

}  // namespace simindex
