// What the tokenizer knows of each code point: how it is folded, and what it is in a word.
//
//   kind of a code point   { delta or expansion, flags }
//     flags  bits 0-1      0 separator, 1 letter (\w), 2 letter of a script without spaces,
//                          3 mark that belongs to whatever it follows
//            bit 2         white space
//            bit 3         folds to several code points: kExpansions[delta] = {number, ...}
//     otherwise            folds to itself + delta, and the flags are those of the folded one
//
// Two steps lead there, so 1.1 M code points cost 75 KB: kKindOf[kBlockOf[c / 128]][c % 128]. The
// tables are written by tools/unicode_tables.py.
#pragma once

#include <cstdint>

namespace simindex {

enum LetterClass : std::uint8_t { kSeparator = 0, kLetter = 1, kUnspaced = 2, kMark = 3 };

inline constexpr std::uint8_t kClassBits = 3;
inline constexpr std::uint8_t kWhiteSpace = 4;
inline constexpr std::uint8_t kSeveral = 8;

inline constexpr std::uint32_t kMostCodePoint = 0x10ffff;

struct CodePoint {
  std::int32_t delta;
  std::uint8_t flags;
};

// The kind of a code point, which must not be above kMostCodePoint.
const CodePoint& kind_of(std::uint32_t code_point);

// What a code point of the flag kSeveral folds to: {number, first, second, third}.
const std::uint32_t* expansion_of(const CodePoint& kind);

const char* words_version();
const char* folding_version();

}  // namespace simindex
