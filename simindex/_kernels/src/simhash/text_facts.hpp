// What is asked of a text in UTF-8 beside its features.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "simhash/murmur3.hpp"

namespace simindex {

// Bytes that continue no character.
inline std::int64_t characters_of(std::span<const std::uint8_t> text) {
  constexpr std::size_t kBytes = 128;  // are counted in a byte
  std::int64_t found = 0;
  while (!text.empty()) {
    const auto some = text.first(std::min(kBytes, text.size()));
    std::uint8_t here = 0;
    for (const std::uint8_t byte : some) here += static_cast<std::int8_t>(byte) >= -64;
    found += here;
    text = text.subspan(some.size());
  }
  return found;
}

inline constexpr std::size_t kEnd = 64;
inline constexpr std::uint64_t kOfLength = 0x9e3779b97f4a7c15;

// A hash of the length and of both ends, kEnd bytes each: of all of a text that is no longer than both.
inline std::uint64_t text_ends(std::span<const std::uint8_t> text) {
  const std::uint64_t of_length = kOfLength * text.size();
  if (text.size() <= 2 * kEnd) return murmur3_x64_128(text.data(), text.size(), 0).first ^ of_length;
  std::array<std::uint8_t, 2 * kEnd> ends;
  std::memcpy(ends.data(), text.data(), kEnd);
  std::memcpy(ends.data() + kEnd, text.data() + text.size() - kEnd, kEnd);
  return murmur3_x64_128(ends.data(), ends.size(), 0).first ^ of_length;
}

}  // namespace simindex
