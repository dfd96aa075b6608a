// Bits that are set: of a word, and of each byte or lane of a vector; and those in which rows differ.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"

namespace simindex {

namespace portable {

SIMINDEX_INLINE std::uint64_t popcount(std::uint64_t x) {
#if SIMINDEX_X86 && !defined(__POPCNT__)
  x -= (x >> 1) & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  x += x >> 8;  // a sum of shifts: SSE2 has no 64-bit multiplication
  x += x >> 16;
  x += x >> 32;
  return x & 0x7f;
#else
  return static_cast<std::uint64_t>(std::popcount(x));
#endif
}

// Bits in which two rows differ.
SIMINDEX_INLINE std::uint64_t distance(const std::uint64_t* row, const std::uint64_t* query,
                                       std::size_t words) {
  std::uint64_t bits = 0;
  for (std::size_t w = 0; w < words; ++w) bits += popcount(row[w] ^ query[w]);
  return bits;
}

}  // namespace portable

#if SIMINDEX_X86
namespace avx2 {

// Bits set in each byte; those of each half byte are looked up.
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE __m256i byte_counts(__m256i x) {
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                         0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i low = _mm256_set1_epi8(0x0f);
  return _mm256_add_epi8(
      _mm256_shuffle_epi8(table, _mm256_and_si256(x, low)),
      _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi64(x, 4), low)));
}

// Bits set in each lane of 64 bits.
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE __m256i popcount4(__m256i x) {
  return _mm256_sad_epu8(byte_counts(x), _mm256_setzero_si256());
}

SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE std::uint64_t distance(const std::uint64_t* row,
                                                            const std::uint64_t* query,
                                                            std::size_t words) {
  std::uint64_t bits = 0;
  for (std::size_t w = 0; w < words; ++w)
    bits += static_cast<std::uint64_t>(__builtin_popcountll(row[w] ^ query[w]));
  return bits;
}

}  // namespace avx2

namespace avx512 {

SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE __m512i byte_counts(__m512i x) {
  const __m512i halves = _mm512_set1_epi8(0x0f);
  const __m512i counts = _mm512_set4_epi32(0x04030302, 0x03020201, 0x03020201, 0x02010100);
  const __m512i low = _mm512_shuffle_epi8(counts, _mm512_and_si512(x, halves));
  const __m512i high =
      _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi16(x, 4), halves));
  return _mm512_add_epi8(low, high);
}

SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE __m512i bit_counts(__m512i x) {
  return _mm512_sad_epu8(byte_counts(x), _mm512_setzero_si512());
}

}  // namespace avx512

namespace avx512_vpopcntdq {

SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE __m512i bit_counts(__m512i x) {
  return _mm512_popcnt_epi64(x);
}

}  // namespace avx512_vpopcntdq
#endif

}  // namespace simindex
