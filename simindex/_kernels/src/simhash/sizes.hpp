// How many distinct features a document has, in a byte.
//
//   0         not known
//   1 .. 255  about 2^((code - 1) / 8) up to 2^(254 / 8), nearest by the ratio: within 4.5 %
//
// So codes that differ by d stand for sizes of the ratio 2^(d / 8). FROZEN: files have them.
#pragma once

#include <cstdint>

namespace simindex {

// The code of a number of features; 0 for 0.
std::uint8_t size_code(std::uint64_t features);

}  // namespace simindex
