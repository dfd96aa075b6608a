// Compares a run of consecutive rows with one query and records those within distance h.
//
//   Each level has
//
//     compare<kWords, kAhead>(rows, words, lo, hi, query, number, h, first, out, compared)
//
//   rows      (n, words) row-major; rows lo .. hi-1 are read, nothing else
//   kWords    1 for 64-bit fingerprints, 0 for any width (`words` then says which)
//   kAhead    the rows may still be in memory: ask for those ahead
//   first     stop at the first match and return true; false in any other case
//   compared  grows by the rows examined, in `first` mode up to and including the match, so it is
//             the same at every level
//
// Level 3 compares 8 rows per XOR + VPOPCNTQ, 32 rows with one test, which runs at memory speed (short
// buckets have their own way, bucket.hpp). Levels 1 and 2 count short runs with POPCNT and long ones with
// the nibble table (PSHUFB); level 0 counts with shifts and masks, which the compiler turns into
// SSE2, because the baseline of x86-64 has no POPCNT.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cpu.hpp"
#include "intrinsics.hpp"
#include "matches.hpp"

namespace simindex {

// Asks for `lines` lines 2 KiB ahead in a long run. Hardware that foresees a run may be switched off
// (on the virtual machine measured, one query over 10 M rows took 3 times as long at level 0 and
// twice as long at level 1 without this).
template <bool kAhead>
SIMINDEX_INLINE void ask_ahead(const std::uint64_t* rows, std::uint32_t at, std::uint32_t hi,
                               std::uint32_t lines) {
  constexpr std::uint32_t kDistance = 256;
  if constexpr (kAhead) {
    const std::uint64_t* from = rows + at + (hi - at > kDistance ? kDistance : 0);
    for (std::uint32_t line = 0; line < lines; ++line) __builtin_prefetch(from + 8 * line);
  }
}

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

template <int kWords, bool kAhead = true>
SIMINDEX_INLINE bool compare(const std::uint64_t* rows, std::size_t words, std::uint32_t lo,
                             std::uint32_t hi, const std::uint64_t* query, std::int64_t number,
                             std::uint64_t h, bool first, Matches& out, std::uint64_t& compared) {
  compared += hi - lo;
  std::uint32_t i = lo;
  if constexpr (kWords == 1) {
    const std::uint64_t wanted = query[0];
    for (; hi - i >= 8; i += 8) {
      ask_ahead<kAhead>(rows, i, hi, 1);
      std::uint64_t near = 0;
      std::uint64_t bits[8];
      for (int j = 0; j < 8; ++j) {
        bits[j] = popcount(rows[i + j] ^ wanted);
        near |= bits[j] - h - 1;  // the top bit: bits <= h
      }
      if (near >> 63) [[unlikely]] {
        for (std::uint32_t j = 0; j < 8; ++j) {
          if (bits[j] > h) continue;
          out.push(number, i + j, bits[j]);
          if (first) {
            compared -= hi - (i + j + 1);
            return true;
          }
        }
      }
    }
  }
  const std::size_t width = kWords == 1 ? 1 : words;
  for (; i < hi; ++i) {
    const std::uint64_t* row = rows + i * width;
    std::uint64_t bits = 0;
    for (std::size_t w = 0; w < width; ++w) bits += popcount(row[w] ^ query[w]);
    if (bits > h) continue;
    out.push(number, i, bits);
    if (first) {
      compared -= hi - (i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace portable

#if SIMINDEX_X86
namespace avx2 {

SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE __m256i popcount4(__m256i x) {
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                         0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i low = _mm256_set1_epi8(0x0f);
  const __m256i bytes =
      _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(x, low)),
                      _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi64(x, 4), low)));
  return _mm256_sad_epu8(bytes, _mm256_setzero_si256());
}

template <int kWords, bool kAhead = true>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE bool compare(const std::uint64_t* rows, std::size_t words,
                                                  std::uint32_t lo, std::uint32_t hi,
                                                  const std::uint64_t* query, std::int64_t number,
                                                  std::uint64_t h, bool first, Matches& out,
                                                  std::uint64_t& compared) {
  compared += hi - lo;
  std::uint32_t i = lo;
  if constexpr (kWords == 1) {
    const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(query[0]));
    const __m256i beyond = _mm256_set1_epi64x(static_cast<long long>(h) + 1);
    for (; hi - i >= 16; i += 16) {
      ask_ahead<kAhead>(rows, i, hi, 2);
      unsigned near = 0;
      for (int j = 0; j < 4; ++j) {
        const __m256i row =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + i + 4 * j));
        const __m256i close =
            _mm256_cmpgt_epi64(beyond, popcount4(_mm256_xor_si256(row, wanted)));
        near |= static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(close))) << (4 * j);
      }
      for (; near != 0; near &= near - 1) {
        const std::uint32_t at = i + static_cast<std::uint32_t>(std::countr_zero(near));
        out.push(number, at, static_cast<std::uint64_t>(std::popcount(rows[at] ^ query[0])));
        if (first) {
          compared -= hi - (at + 1);
          return true;
        }
      }
    }
  }
  const std::size_t width = kWords == 1 ? 1 : words;
  for (; i < hi; ++i) {
    const std::uint64_t* row = rows + i * width;
    std::uint64_t bits = 0;
    for (std::size_t w = 0; w < width; ++w)
      bits += static_cast<std::uint64_t>(__builtin_popcountll(row[w] ^ query[w]));
    if (bits > h) continue;
    out.push(number, i, bits);
    if (first) {
      compared -= hi - (i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace avx2

namespace avx512 {

SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE __mmask8 lowest(std::uint32_t count) {
  return static_cast<__mmask8>((1u << (count < 8 ? count : 8)) - 1);
}

SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE std::uint64_t total(__m512i x) {
  const __m256i half = _mm256_add_epi64(_mm512_castsi512_si256(x),
                                        _mm512_maskz_extracti64x4_epi64(0xff, x, 1));
  const __m128i pair =
      _mm_add_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  return static_cast<std::uint64_t>(
      _mm_cvtsi128_si64(_mm_add_epi64(pair, _mm_unpackhi_epi64(pair, pair))));
}

// Records the rows of `near`, whose bit 0 is row `at`; true if the search is over.
SIMINDEX_TARGET_AVX512_VPOPCNTDQ inline bool record(const std::uint64_t* rows, std::uint32_t at,
                                          std::uint32_t hi, std::uint64_t near,
                                          std::uint64_t wanted, std::int64_t number, bool first,
                                          Matches& out, std::uint64_t& compared) {
  for (; near != 0; near &= near - 1) {
    const std::uint32_t row = at + static_cast<std::uint32_t>(std::countr_zero(near));
    out.push(number, row, static_cast<std::uint64_t>(__builtin_popcountll(rows[row] ^ wanted)));
    if (first) {
      compared -= hi - (row + 1);
      return true;
    }
  }
  return false;
}

SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE __m512i distances(__m512i rows, __m512i wanted) {
  return _mm512_popcnt_epi64(_mm512_xor_si512(rows, wanted));
}

// compare<1> without its accounting: `compared` already holds all of lo .. hi-1.
template <bool kAhead>
SIMINDEX_TARGET_AVX512_VPOPCNTDQ inline bool compare_words(const std::uint64_t* rows, std::uint32_t lo,
                                                std::uint32_t hi, std::uint64_t query,
                                                std::int64_t number, std::uint64_t h, bool first,
                                                Matches& out, std::uint64_t& compared) {
  const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(query));
  const __m512i limit = _mm512_set1_epi64(static_cast<long long>(h));
  std::uint32_t i = lo;
  for (; hi - i >= 32; i += 32) {
    ask_ahead<kAhead>(rows, i, hi, 4);
    __m512i bits[4];
    for (int j = 0; j < 4; ++j)
      bits[j] = distances(_mm512_loadu_si512(rows + i + 8 * j), wanted);
    // Counts fit the lowest byte, so the byte minimum, which runs beside the counting, will do.
    const __m512i least = _mm512_min_epu8(_mm512_min_epu8(bits[0], bits[1]),
                                          _mm512_min_epu8(bits[2], bits[3]));
    if (_mm512_cmple_epu64_mask(least, limit) == 0) continue;
    std::uint64_t near = 0;
    for (int j = 0; j < 4; ++j)
      near |= static_cast<std::uint64_t>(_mm512_cmple_epu64_mask(bits[j], limit)) << (8 * j);
    if (record(rows, i, hi, near, query, number, first, out, compared)) return true;
  }
  for (; i < hi; i += hi - i < 8 ? hi - i : 8) {
    const __mmask8 present = lowest(hi - i);
    const __m512i row = _mm512_maskz_loadu_epi64(present, rows + i);
    const __mmask8 near = _mm512_mask_cmple_epu64_mask(present, distances(row, wanted), limit);
    if (near != 0 && record(rows, i, hi, near, query, number, first, out, compared)) return true;
  }
  return false;
}

template <int kWords, bool kAhead = true>
SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE bool compare(const std::uint64_t* rows, std::size_t words,
                                                    std::uint32_t lo, std::uint32_t hi,
                                                    const std::uint64_t* query,
                                                    std::int64_t number, std::uint64_t h,
                                                    bool first, Matches& out,
                                                    std::uint64_t& compared) {
  compared += hi - lo;
  if constexpr (kWords == 1)
    return compare_words<kAhead>(rows, lo, hi, query[0], number, h, first, out, compared);
  for (std::uint32_t i = lo; i < hi; ++i) {
    const std::uint64_t* row = rows + i * words;
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t w = 0; w < words; w += 8) {
      const __mmask8 present = lowest(static_cast<std::uint32_t>(words - w));
      sums = _mm512_add_epi64(
          sums, _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_maskz_loadu_epi64(present, row + w),
                                                     _mm512_maskz_loadu_epi64(present, query + w))));
    }
    const std::uint64_t bits = total(sums);
    if (bits > h) continue;
    out.push(number, i, bits);
    if (first) {
      compared -= hi - (i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace avx512
#endif

}  // namespace simindex
