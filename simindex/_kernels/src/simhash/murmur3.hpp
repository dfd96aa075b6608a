// MurmurHash3, the x64 variant with 128 bits: the hash of features.
//
//   bytes   | 16 | 16 | ... | 16 | tail of 0..15 |
//             each 16 bytes are two little-endian words k1, k2, mixed into the state h1, h2
//
// The result is that of `mmh3.hash64(data, seed, signed=False)` on a little-endian machine. It is
// always inlined, so a caller that is compiled for wider instructions gets its own copy.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "cpu/levels.hpp"

namespace simindex {

inline constexpr std::uint64_t kMurmurC1 = 0x87c37b91114253d5;
inline constexpr std::uint64_t kMurmurC2 = 0x4cf5ad432745937f;

SIMINDEX_INLINE std::uint64_t murmur3_finish(std::uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccd;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}

SIMINDEX_INLINE std::uint64_t murmur3_scramble_low(std::uint64_t k1) {
  return std::rotl(k1 * kMurmurC1, 31) * kMurmurC2;
}

SIMINDEX_INLINE std::uint64_t murmur3_scramble_high(std::uint64_t k2) {
  return std::rotl(k2 * kMurmurC2, 33) * kMurmurC1;
}

// `size` (0..7) bytes at `p` as a little-endian word, reading no byte beyond them.
SIMINDEX_INLINE std::uint64_t load_tail(const std::uint8_t* p, std::size_t size) {
  if (size >= 4) {  // two words that overlap where size < 8
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + size - 4, 4);
    return low | (std::uint64_t{high} << (8 * (size - 4)));
  }
  if (size == 0) return 0;
  return p[0] | (std::uint64_t{p[size / 2]} << (8 * (size / 2))) |
         (std::uint64_t{p[size - 1]} << (8 * (size - 1)));
}

// Both 64-bit halves of the hash of the `size` bytes at `p`, which may be null when size is 0.
SIMINDEX_INLINE std::pair<std::uint64_t, std::uint64_t> murmur3_x64_128(const std::uint8_t* p,
                                                                        std::size_t size,
                                                                        std::uint32_t seed) {
  std::uint64_t h1 = seed;
  std::uint64_t h2 = seed;
  const std::uint8_t* const end = p + (size & ~std::size_t{15});
  for (; p != end; p += 16) {
    std::uint64_t k1 = 0;
    std::uint64_t k2 = 0;
    std::memcpy(&k1, p, 8);
    std::memcpy(&k2, p + 8, 8);
    h1 ^= murmur3_scramble_low(k1);
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729;
    h2 ^= murmur3_scramble_high(k2);
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5;
  }
  const std::size_t rest = size & 15;
  if (rest > 8) {
    std::uint64_t k1 = 0;
    std::memcpy(&k1, p, 8);
    h2 ^= murmur3_scramble_high(load_tail(p + 8, rest - 8));
    h1 ^= murmur3_scramble_low(k1);
  } else if (rest == 8) {
    std::uint64_t k1 = 0;
    std::memcpy(&k1, p, 8);
    h1 ^= murmur3_scramble_low(k1);
  } else if (rest > 0) {
    h1 ^= murmur3_scramble_low(load_tail(p, rest));
  }
  h1 ^= size;
  h2 ^= size;
  h1 += h2;
  h2 += h1;
  h1 = murmur3_finish(h1);
  h2 = murmur3_finish(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

}  // namespace simindex
