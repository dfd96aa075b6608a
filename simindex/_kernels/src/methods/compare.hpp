// Compares a run of consecutive rows with one query and records those within distance h.
//
//   Each level has
//
//     compare<kWords, kSieved, kAhead>(rows, words, lo, hi, query, sieve, number, h, first, out,
//                                      compared)
//
//     near_rows(rows, count, word, h)     which of at most 24 rows of 64 bits, without a branch
//
//   rows      (n, words) row-major; rows lo .. hi-1 are read, nothing else
//   kWords    1 for 64-bit fingerprints, 0 for any width (`words` then says which)
//   kSieved   equal bytes of a line that is counted, as the sieve says; 0 counts all, and is all there is
//             where kSieves is false
//   kAhead    the rows may still be in memory: ask for those ahead
//   first     stop at the first match and return true; false in any other case
//   out       takes (number, row, distance, exclusive or of the first words of row and query)
//   compared  grows by the rows examined, in `first` mode up to and including the match, so it is
//             the same at every level
//
// Level 3 compares 8 rows per XOR + VPOPCNTQ, 32 rows with one test, which runs at memory speed (short
// buckets have their own way, bucket.hpp); level 2 the same with the nibble table (VPSHUFB) in place of
// VPOPCNTQ. Level 1 counts short runs with POPCNT and long ones with the nibble table; level 0 counts with shifts and masks, which the compiler turns into
// SSE2, because the baseline of x86-64 has no POPCNT.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "bits/hamming.hpp"
#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"
#include "methods/matches.hpp"

namespace simindex {

// Asks for `lines` lines 2 KiB ahead in a long run. Hardware that foresees a run may be switched off
// (on the virtual machine measured, one query over 10 M rows took 3 times as long at level 0 and
// twice as long at level 1 without this).
SIMINDEX_INLINE void ask_ahead(const std::uint64_t* rows, std::size_t left, std::size_t lines) {
  constexpr std::size_t kDistance = 256;
  const std::uint64_t* from = rows + (left > kDistance ? kDistance : 0);
  for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(from + 8 * line);
}

// What tells most lines of eight rows from a query without counting bits: a row within h of it differs
// in at most h bytes, so of 8 - b bytes at least 8 - b - h are equal. The b bytes that the rows of a
// bucket share are left out: equal in all of them, they say nothing. Only a line that holds so many
// equal bytes is counted. One comparison of 64 bytes and four operations on its mask replace nine on
// vectors where a processor has no VPOPCNTQ: 20 ns in place of 40 for a bucket of 150 rows.
struct Sieve {
  Sieve() = default;

  // The way that lets the fewest lines of uniform rows pass, if those are few enough.
  Sieve(std::uint64_t h, int header_bits) {
    double least = kMostPassing;
    for (const int bytes : {(header_bits + 7) / 8, header_bits / 8}) {
      // Expected equal bytes of a line; in a byte partly of the header fewer bits may differ.
      const int shared = std::max(0, header_bits - 8 * bytes);
      const double expected = 8.0 / 256 * (8 - bytes + ((1 << shared) - 1));
      for (const int equal : {2, 3}) {
        const double passing = equal == 2 ? expected * expected / 2
                                          : expected * expected * expected / 6;
        if (h + static_cast<std::uint64_t>(equal + bytes) > 8 || passing > least) continue;
        least = passing;
        equal_bytes = equal;
        blind = bytes == 0 ? 0 : ~std::uint64_t{0} << (64 - 8 * bytes);
      }
    }
  }

  static constexpr double kMostPassing = 1.0 / 32;
  int equal_bytes = 0;      // of a line, to be counted: 2 or 3; 0 if every line is to be
  std::uint64_t blind = 0;  // all bits of the bytes that are left out
};

namespace portable {

inline constexpr bool kSieves = false;

// Which of at most 24 rows are within h of a word.
SIMINDEX_INLINE std::uint32_t near_rows(const std::uint64_t* rows, std::uint32_t count,
                                        std::uint64_t word, std::uint64_t h) {
  std::uint32_t near = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    near |= static_cast<std::uint32_t>(popcount(rows[i] ^ word) <= h) << i;
  return near;
}

template <int kWords, int kSieved, bool kAhead = true, class Sink>
SIMINDEX_INLINE bool compare(const std::uint64_t* rows, std::size_t words, std::uint32_t lo,
                             std::uint32_t hi, const std::uint64_t* query, const Sieve&,
                             std::int64_t number, std::uint64_t h, bool first, Sink& out,
                             std::uint64_t& compared) {
  compared += hi - lo;
  std::uint32_t i = lo;
  if constexpr (kWords == 1) {
    const std::uint64_t wanted = query[0];
    for (; hi - i >= 8; i += 8) {
      if constexpr (kAhead) ask_ahead(rows + i, hi - i, 1);
      std::uint64_t near = 0;
      std::uint64_t bits[8];
      for (int j = 0; j < 8; ++j) {
        bits[j] = popcount(rows[i + j] ^ wanted);
        near |= bits[j] - h - 1;  // the top bit: bits <= h
      }
      if (near >> 63) [[unlikely]] {
        for (std::uint32_t j = 0; j < 8; ++j) {
          if (bits[j] > h) continue;
          out.take(number, i + j, bits[j], rows[i + j] ^ wanted);
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
    std::uint64_t bits = popcount(row[0] ^ query[0]);
    if (bits > h) continue;
    for (std::size_t w = 1; w < width; ++w) bits += popcount(row[w] ^ query[w]);
    if (bits > h) continue;
    out.take(number, i, bits, row[0] ^ query[0]);
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

inline constexpr bool kSieves = false;

SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE std::uint32_t near_rows(const std::uint64_t* rows,
                                                             std::uint32_t count,
                                                             std::uint64_t word, std::uint64_t h) {
  std::uint32_t near = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint64_t>(__builtin_popcountll(rows[i] ^ word));
    near |= static_cast<std::uint32_t>(bits <= h) << i;
  }
  return near;
}

template <int kWords, int kSieved, bool kAhead = true, class Sink>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE bool compare(const std::uint64_t* rows, std::size_t words,
                                                  std::uint32_t lo, std::uint32_t hi,
                                                  const std::uint64_t* query, const Sieve&,
                                                  std::int64_t number, std::uint64_t h, bool first,
                                                  Sink& out, std::uint64_t& compared) {
  compared += hi - lo;
  std::uint32_t i = lo;
  if constexpr (kWords == 1) {
    const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(query[0]));
    const __m256i beyond = _mm256_set1_epi64x(static_cast<long long>(h) + 1);
    for (; hi - i >= 16; i += 16) {
      if constexpr (kAhead) ask_ahead(rows + i, hi - i, 2);
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
        const std::uint64_t differing = rows[at] ^ query[0];
        out.take(number, at, static_cast<std::uint64_t>(std::popcount(differing)), differing);
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
    auto bits = static_cast<std::uint64_t>(__builtin_popcountll(row[0] ^ query[0]));
    if (bits > h) continue;
    for (std::size_t w = 1; w < width; ++w)
      bits += static_cast<std::uint64_t>(__builtin_popcountll(row[w] ^ query[w]));
    if (bits > h) continue;
    out.take(number, i, bits, row[0] ^ query[0]);
    if (first) {
      compared -= hi - (i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace avx2

namespace avx512 {

inline constexpr bool kSieves = true;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/compare.inc"
#undef SIMINDEX_LEVEL_TARGET

}  // namespace avx512

namespace avx512_vpopcntdq {

inline constexpr bool kSieves = false;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "methods/compare.inc"
#undef SIMINDEX_LEVEL_TARGET

}  // namespace avx512_vpopcntdq
#endif

}  // namespace simindex
