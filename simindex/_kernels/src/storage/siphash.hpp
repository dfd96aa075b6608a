// SipHash-2-4 with 128 bits of output: the keyed hash of keys.
//
//   bytes   | 8 | 8 | ... | tail of 0..7, then zeros, the last byte is the size modulo 256 |
//             each 8 bytes are a little-endian word, mixed into the state v0..v3 by two rounds
//
// Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), with the 128-bit output of the
// authors' reference implementation. Who does not know the secret cannot build two keys whose
// hashes are equal; MurmurHash3 (murmur3.hpp) has no such property, with whatever seed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "cpu/levels.hpp"
#include "simhash/murmur3.hpp"

namespace simindex {

inline constexpr std::size_t kSecretBytes = 16;

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  SIMINDEX_INLINE void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }

  SIMINDEX_INLINE void mix(std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }

  SIMINDEX_INLINE std::uint64_t folded() const { return v0 ^ v1 ^ v2 ^ v3; }
};

// The state before the first word, which is the same for all keys of a secret.
inline SipState sip_start(std::span<const std::uint8_t, kSecretBytes> secret) {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
  std::memcpy(&k0, secret.data(), 8);
  std::memcpy(&k1, secret.data() + 8, 8);
  return {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
          k1 ^ 0x7465646279746573};
}

// Both 64-bit halves of the hash of the `size` bytes at `p`, which may be null when size is 0.
SIMINDEX_INLINE std::pair<std::uint64_t, std::uint64_t> siphash_128(SipState state,
                                                                    const std::uint8_t* p,
                                                                    std::size_t size) {
  const std::uint8_t* const end = p + (size & ~std::size_t{7});
  for (; p != end; p += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    state.mix(word);
  }
  state.mix(load_tail(p, size & 7) | (std::uint64_t{size} << 56));
  state.v2 ^= 0xee;
  state.rounds(4);
  const std::uint64_t first = state.folded();
  state.v1 ^= 0xdd;
  state.rounds(4);
  return {first, state.folded()};
}

}  // namespace simindex
