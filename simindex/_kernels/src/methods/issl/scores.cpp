#include "methods/issl/scores.hpp"

#include <algorithm>

#include "bits/hamming.hpp"
#include "cpu/intrinsics.hpp"
#include "methods/compare.hpp"

namespace simindex {
namespace {

namespace portable_level {

using portable::distance;

template <int kWidth>
std::uint64_t row_score(const std::uint64_t* row, const std::uint64_t* query, std::size_t words,
                        int max_error) {
  std::uint64_t score = 0;
  for (std::size_t w = 0; w < words; ++w) {
    std::uint64_t x = row[w] ^ query[w];
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    if constexpr (kWidth == 16) x = (x & 0x00ff00ff00ff00ffu) + ((x >> 8) & 0x00ff00ff00ff00ffu);
    for (int at = 0; at < 64; at += kWidth) {
      const int errors = static_cast<int>((x >> at) & 0xff);
      score += errors <= max_error ? static_cast<std::uint64_t>(kWidth - errors) : 0;
    }
  }
  return score;
}

#define SIMINDEX_LEVEL_TARGET
#include "methods/issl/scores.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {

using avx2::byte_counts;
using avx2::distance;

template <int kWidth>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE std::uint64_t row_score(const std::uint64_t* row,
                                                             const std::uint64_t* query,
                                                             std::size_t words, int max_error) {
  __m256i sums = _mm256_setzero_si256();  // four of 64 bits
  for (std::size_t w = 0; w < words; w += 4) {
    alignas(32) std::uint64_t part[4] = {};
    __m256i x;
    if (words - w >= 4) {
      x = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + w)),
                           _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + w)));
    } else {
      // What lies beyond the row counts as all bits different, which scores nothing.
      for (std::size_t i = 0; i < 4; ++i)
        part[i] = w + i < words ? row[w + i] ^ query[w + i] : ~std::uint64_t{0};
      x = _mm256_load_si256(reinterpret_cast<const __m256i*>(part));
    }
    __m256i errors = byte_counts(x);
    __m256i gains;
    if constexpr (kWidth == 8) {
      const __m256i beyond =
          _mm256_cmpgt_epi8(errors, _mm256_set1_epi8(static_cast<char>(max_error)));
      gains = _mm256_andnot_si256(beyond, _mm256_sub_epi8(_mm256_set1_epi8(8), errors));
    } else {
      errors = _mm256_maddubs_epi16(errors, _mm256_set1_epi8(1));
      const __m256i beyond =
          _mm256_cmpgt_epi16(errors, _mm256_set1_epi16(static_cast<short>(max_error)));
      gains = _mm256_andnot_si256(beyond, _mm256_sub_epi16(_mm256_set1_epi16(16), errors));
    }
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(gains, _mm256_setzero_si256()));
  }
  const __m128i pair =
      _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return static_cast<std::uint64_t>(
      _mm_cvtsi128_si64(_mm_add_epi64(pair, _mm_unpackhi_epi64(pair, pair))));
}

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "methods/issl/scores.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {

using avx512::byte_counts;

SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE std::uint64_t distance(const std::uint64_t* row,
                                                              const std::uint64_t* query,
                                                              std::size_t words) {
  constexpr std::size_t kMostWords = 8 * 31;  // whose counts fit a byte
  __m512i sums = _mm512_setzero_si512();
  for (std::size_t part = 0; part < words; part += kMostWords) {
    const std::size_t end = std::min(words, part + kMostWords);
    __m512i bytes = _mm512_setzero_si512();
    std::size_t w = part;
    for (; end - w >= 8; w += 8)
      bytes = _mm512_add_epi8(
          bytes, byte_counts(_mm512_xor_si512(_mm512_loadu_si512(row + w),
                                              _mm512_loadu_si512(query + w))));
    if (w < end) {
      const __mmask8 present = avx512::lowest(static_cast<std::uint32_t>(end - w));
      bytes = _mm512_add_epi8(
          bytes, byte_counts(_mm512_xor_si512(_mm512_maskz_loadu_epi64(present, row + w),
                                              _mm512_maskz_loadu_epi64(present, query + w))));
    }
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(bytes, _mm512_setzero_si512()));
  }
  return avx512::total(sums);
}

template <int kWidth>
SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE std::uint64_t row_score(const std::uint64_t* row,
                                                               const std::uint64_t* query,
                                                               std::size_t words, int max_error) {
  const __m512i all = _mm512_set1_epi64(-1);
  __m512i sums = _mm512_setzero_si512();
  for (std::size_t w = 0; w < words; w += 8) {
    const __mmask8 present = avx512::lowest(static_cast<std::uint32_t>(words - w));
    // What lies beyond the row counts as all bits different, which scores nothing.
    const __m512i x = _mm512_mask_xor_epi64(all, present, _mm512_maskz_loadu_epi64(present, row + w),
                                            _mm512_maskz_loadu_epi64(present, query + w));
    __m512i errors = byte_counts(x);
    __m512i gains;
    if constexpr (kWidth == 8) {
      const __mmask64 within =
          _mm512_cmple_epu8_mask(errors, _mm512_set1_epi8(static_cast<char>(max_error)));
      gains = _mm512_maskz_sub_epi8(within, _mm512_set1_epi8(8), errors);
    } else {
      errors = _mm512_maddubs_epi16(errors, _mm512_set1_epi8(1));
      const __mmask32 within =
          _mm512_cmple_epu16_mask(errors, _mm512_set1_epi16(static_cast<short>(max_error)));
      gains = _mm512_maskz_sub_epi16(within, _mm512_set1_epi16(16), errors);
    }
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(gains, _mm512_setzero_si512()));
  }
  return avx512::total(sums);
}

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/issl/scores.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level
#endif

}  // namespace

RowScoring row_scoring(int level) {
#if SIMINDEX_X86
  // Bits counted in lanes of 8 or 16 bits need the nibble table, also where VPOPCNTQ is to be had.
  if (level >= kAvx512) return avx512_level::kScoring;
  if (level >= kAvx2) return avx2_level::kScoring;
#endif
  (void)level;
  return portable_level::kScoring;
}

}  // namespace simindex
