// What tables of features multiply hashes by, to take the top bits as a place.
#pragma once

#include <cstdint>

namespace simindex {

// Odd, and drawn anew by every process, so that no document can be written whose features all fall
// into one run of slots. No result depends on it.
extern const std::uint64_t kHashFactor;

}  // namespace simindex
