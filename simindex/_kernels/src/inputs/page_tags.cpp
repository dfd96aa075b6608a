#include "inputs/page_tags.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace simindex {
namespace {

using Byte = const std::uint8_t*;

constexpr std::array<std::string_view, 13> kFormatting{
    "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"};
constexpr std::array<std::string_view, 3> kNested{"div", "article", "ol"};
// Of which a page has one element each, which takes the attributes of all such tags.
constexpr std::array<std::string_view, 2> kOnce{"html", "body"};
constexpr std::size_t kLongestName = 7;

// Bytes that end something within a tag.
enum Kind : std::uint8_t { kSpace = 1, kSlash = 2, kClose = 4, kEquals = 8 };

constexpr std::array<std::uint8_t, 256> kKinds = [] {
  std::array<std::uint8_t, 256> kinds{};
  for (const std::uint8_t space : {' ', '\t', '\n', '\f', '\r'}) kinds[space] = kSpace;
  kinds['/'] = kSlash;
  kinds['>'] = kClose;
  kinds['='] = kEquals;
  return kinds;
}();

bool is_space(std::uint8_t byte) { return kKinds[byte] == kSpace; }

// The first byte that is of one of these kinds, or the end.
Byte first_of(unsigned kinds, Byte at, Byte end) {
  while (at != end && (kKinds[*at] & kinds) == 0) ++at;
  return at;
}

// The first byte that is of none of these kinds, or the end.
Byte first_not_of(unsigned kinds, Byte at, Byte end) {
  while (at != end && (kKinds[*at] & kinds) != 0) ++at;
  return at;
}

bool is_letter(std::uint8_t byte) {
  const std::uint8_t lower = byte | 0x20;
  return lower >= 'a' && lower <= 'z';
}

// Of a name: letters, digits, "_" and what is not ASCII.
bool is_word(std::uint8_t byte) {
  return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '_' || byte >= 0x80;
}

Byte after(Byte at, Byte end, std::uint8_t quote) {
  const auto* const found =
      static_cast<Byte>(std::memchr(at, quote, static_cast<std::size_t>(end - at)));
  return found == nullptr ? end : found + 1;
}

// Attributes of the tag whose name begins at `at`, up to `most` + 1; `at` is then where it ends.
std::size_t attributes_of(Byte& at, Byte end, std::size_t most) {
  at = first_of(kSpace | kSlash | kClose, at, end);
  std::size_t found = 0;
  while (found <= most) {
    at = first_not_of(kSpace | kSlash, at, end);
    if (at == end || *at == '>') break;
    ++found;
    at = first_of(kSpace | kSlash | kClose | kEquals, at + 1, end);
    const Byte value = first_not_of(kSpace, at, end);
    if (value == end || *value != '=') continue;
    at = first_not_of(kSpace, value + 1, end);
    if (at == end) break;
    if (*at == '"' || *at == '\'') {
      at = after(at + 1, end, *at);
    } else {
      at = first_of(kSpace | kClose, at, end);
    }
  }
  return found;
}

}  // namespace

PageTags page_tags(std::span<const std::uint8_t> page, std::size_t most) {
  PageTags found{0, 0, 0};
  std::array<std::size_t, kFormatting.size()> open{};
  std::size_t left = kPasses * page.size();
  std::size_t once = 0;
  std::size_t work = kWork * most * most;
  Byte at = page.data();
  const Byte end = at + page.size();
  while (at != end) {
    at = static_cast<Byte>(std::memchr(at, '<', static_cast<std::size_t>(end - at)));
    if (at == nullptr) break;
    ++at;
    const bool closing = at != end && *at == '/';
    at += closing;
    if (at == end || !is_letter(*at)) continue;
    char name[kLongestName];
    std::size_t length = 0;
    while (at + length != end && length < kLongestName && is_letter(at[length])) {
      name[length] = static_cast<char>(at[length] | 0x20);
      ++length;
    }
    const std::string_view named(name, length);
    const std::uint8_t next = at + length == end ? 0 : at[length];
    if (is_space(next) || next == '/' || next == '>') {
      const auto* const known = std::find(kFormatting.begin(), kFormatting.end(), named);
      if (known != kFormatting.end()) {
        std::size_t& opened = open[static_cast<std::size_t>(known - kFormatting.begin())];
        if (!closing) {
          ++opened;
        } else if (opened > 0) {
          --opened;
        }
      }
    }
    if (closing) continue;
    const auto is_one_of = [&](const auto& names) {
      return !is_word(next) && std::find(names.begin(), names.end(), named) != names.end();
    };
    if (is_one_of(kNested)) ++found.nested;
    if (found.attributes > most) continue;
    Byte ends = at;
    std::size_t attributes = attributes_of(ends, end, most);
    const std::size_t squared = attributes * attributes;
    if (is_one_of(kOnce)) attributes = once = std::min(once + attributes, most + 1);
    found.attributes = std::max(found.attributes, attributes);
    const auto looked = static_cast<std::size_t>(ends - at);
    if (looked > left || squared > work) found.attributes = most + 1;
    left -= std::min(left, looked);
    work -= std::min(work, squared);
  }
  for (const std::size_t opened : open) found.unclosed += opened;
  return found;
}

}  // namespace simindex
