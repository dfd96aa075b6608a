// Texts and keys of JSON lines, as columns: of each line that is an object of plain fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

struct JsonFields {
  std::span<const std::uint8_t> text, key;  // names, in UTF-8
  std::size_t most_line, most_key;          // bytes of a line with its end, and of a key
};

inline constexpr std::size_t kJsonNesting = 32;
inline constexpr std::size_t kJsonNumber = 300;

// How many lines there are; bytes behind the last line feed are one.
std::size_t count_lines(std::span<const std::uint8_t> block);

// Line i is block[starts[i], starts[i + 1]); starts has one more than there are lines.
//
// plain[i] is 1 if the line is JSON in strict UTF-8 that every parser reads alike: an object whose text
// field is a string, and whose key field is a string of ASCII, neither empty nor too long, or a whole
// number, which is its digits then. Of a repeated name the last value counts. Its text is then texts[text_ends[i], text_ends[i + 1]), and its key likewise,
// without escapes. All other lines have empty ones, whatever is wrong with them: control characters,
// halves of surrogate pairs, escapes in names, more than kJsonNesting levels, numbers of more than
// kJsonNumber characters, no such field. So a line that is not plain may still be a document.
//
// texts and keys have the size of the block: nothing is longer unescaped.
void json_lines(std::span<const std::uint8_t> block, const JsonFields& fields,
                std::span<std::int64_t> starts, std::span<std::uint8_t> plain,
                std::uint8_t* texts, std::span<std::int64_t> text_ends, std::uint8_t* keys,
                std::span<std::int64_t> key_ends);

}  // namespace simindex
