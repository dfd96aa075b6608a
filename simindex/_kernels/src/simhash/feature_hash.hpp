// Hashes of many features at once: the first 64 bits of MurmurHash3 x64-128 of slices of one text.
//
//   feature i is text[starts[i], ends[i])      e.g. starts of units 0.., ends of units n-1.. for n-grams
//
// At least Units::kPadding bytes behind every end can be read; they do not change the result. Level 2
// hashes eight features side by side, masking what lies behind each: features differ in length by
// more than a branch predictor learns, and mispredicted branches cost more than the hash itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simindex {

void hash_features(const std::uint8_t* text, const std::uint64_t* starts, const std::uint64_t* ends,
                   std::size_t n, std::uint32_t seed, std::uint64_t* hashes, int level);

}  // namespace simindex
