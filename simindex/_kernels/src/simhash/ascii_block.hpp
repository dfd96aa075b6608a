// The leading ASCII of up to 64 code units: in lower case, and where its letters are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simindex {

struct AsciiBlock {
  std::size_t size;      // code units before the first that is not ASCII
  std::uint64_t letters; // bit i: unit i is a letter of a word (0-9 A-Z a-z _); none from `size` on
  std::uint64_t spaces;  // bit i: unit i is white space; none from `size` on
};

// Reads `size` (at most 64) code units at `text`, and nothing beyond; writes 64 bytes to `lower`.
AsciiBlock ascii_block(const std::uint8_t* text, std::size_t size, std::uint8_t* lower, int level);
AsciiBlock ascii_block(const std::uint16_t* text, std::size_t size, std::uint8_t* lower, int level);
AsciiBlock ascii_block(const std::uint32_t* text, std::size_t size, std::uint8_t* lower, int level);

}  // namespace simindex
