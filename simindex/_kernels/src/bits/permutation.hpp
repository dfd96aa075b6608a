// Moves the bits of rows, as the tables of a block design want them.
//
// A permutation is a list of rotations under masks: permuted[target] |= rotl(x[source], left) & mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

struct Rotation {
  std::uint64_t source;  // word
  std::uint64_t target;  // word
  std::uint64_t left;
  std::uint64_t mask;
};
static_assert(sizeof(Rotation) == 4 * sizeof(std::uint64_t));

// to (n, words) = from (n, words), permuted; they must not overlap.
void permute(const std::uint64_t* from, std::size_t n, std::size_t words,
             std::span<const Rotation> rotations, std::uint64_t* to, int level);

}  // namespace simindex
