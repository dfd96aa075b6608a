#include "methods/scan/topscan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>

#include "cpu/intrinsics.hpp"
#include "cpu/memory.hpp"
#include "cpu/workers.hpp"
#include "methods/compare.hpp"

namespace simindex {
namespace {

constexpr std::size_t kSlabBytes = 32 * 1024;
constexpr std::size_t kAhead = 256;    // words that a row is asked for ahead of its turn
constexpr std::size_t kEntries = 40;   // vectors of a group, see Picks
constexpr std::size_t kBlock = 256;    // queries whose counts stay in the second-level cache
constexpr std::size_t kPart = 4096;    // queries that pass over the rows together
constexpr std::size_t kFewest = 12;    // queries that are worth the columns: 25 us for 512 rows

// Words that begin at a cache line.
Memory<std::uint64_t> lanes(std::size_t words) {
  const std::size_t bytes = (8 * words + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return Memory<std::uint64_t>(static_cast<std::uint64_t*>(memory));
}

// A limit below this may well end a slab after so many columns: unrelated rows differ in half of them, the
// nearest of 512 in 1.5 roots fewer.
std::uint32_t ending(std::size_t columns) {
  const double c = static_cast<double>(columns);
  return static_cast<std::uint32_t>(std::max(0.0, c / 2 - std::sqrt(c)));
}

// Which entries of a slab's tables the queries take.
//
// Nine columns a0 a1 a2 b0 b1 b2 c0 c1 c2 are a group. A query inverts those where its bit is 1, so that
// ones are differing bits. Three bits have 8 patterns p, whatever the query: the tables hold the sum of
// three columns and its carry for each, in vectors of a bit per row:
//
//   vector   0 + p   carry of a     vector  24 + 2r      carry of the sums of a, b and c
//            8 + p   carry of b             24 + 2r + 1  sum of these: a bit worth 1
//           16 + p   carry of c     r: which of the three sums are inverted
//
// So nine columns become one bit worth 1 and four worth 2, by five loads in place of eight additions.
// `bytes` holds, for each group of each query, p of a, of b, of c, and 2r, in words of the table.
struct Picks {
  struct Chunk {
    std::size_t first;   // group
    std::size_t groups;  // 12, 8, 4 or 2
  };

  Picks(const std::uint64_t* queries, std::size_t m_, std::size_t words, std::size_t lane_words)
      : m(m_), groups((64 * words + 17) / 18 * 2),
        planes(static_cast<std::size_t>(std::bit_width(64 * words))) {
    std::size_t first = 0;
    for (const std::size_t size : {12, 8, 4, 2})
      for (; groups - first >= size; first += size) chunks.push_back({first, size});
    bytes.resize(4 * groups * m);
    std::vector<std::uint8_t> bits(9 * groups);
    for (std::size_t block = 0; block < m; block += kBlock) {
      const std::size_t some = std::min(kBlock, m - block);
      for (std::size_t q = 0; q < some; ++q) {
        const std::uint64_t* query = queries + (block + q) * words;
        for (std::size_t i = 0; i < 64 * words; ++i) bits[i] = (query[i / 64] >> (i % 64)) & 1;
        for (const Chunk& chunk : chunks) {
          std::uint8_t* to = bytes.data() + place(block, some, chunk) + q * 4 * chunk.groups;
          for (std::size_t g = chunk.first; g < chunk.first + chunk.groups; ++g) {
            unsigned inverted = 0;
            for (unsigned t = 0; t < 3; ++t) {
              const std::uint8_t* of = bits.data() + 9 * g + 3 * t;
              const unsigned p = of[0] + 2u * of[1] + 4u * of[2];
              inverted |= (static_cast<unsigned>(std::popcount(p)) & 1) << t;
              *to++ = static_cast<std::uint8_t>(p * lane_words);
            }
            *to++ = static_cast<std::uint8_t>(2 * inverted * lane_words);
          }
        }
      }
    }
  }

  // Of a chunk, query after query of a block.
  const std::uint8_t* of(std::size_t block, std::size_t some, const Chunk& chunk) const {
    return bytes.data() + place(block, some, chunk);
  }

  std::size_t m;
  std::size_t groups;
  std::size_t planes;  // bits of a count
  std::vector<Chunk> chunks;
  std::vector<std::uint8_t> bytes;

 private:
  std::size_t place(std::size_t block, std::size_t some, const Chunk& chunk) const {
    return 4 * (block * groups + chunk.first * some);
  }
};

namespace portable_level {

using portable::distance;

// 128 bits on x86-64 and arm64.
typedef std::uint64_t Vector __attribute__((vector_size(16), may_alias));
constexpr std::size_t kWords = 2;

#define SIMINDEX_LEVEL_TARGET
#define SIMINDEX_LANES SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return Vector{0, 0}; }
SIMINDEX_LANES Vector fill(std::uint64_t x) { return Vector{x, x}; }
SIMINDEX_LANES Vector load(const std::uint64_t* from) {
  return *reinterpret_cast<const Vector*>(from);
}
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) { *reinterpret_cast<Vector*>(to) = x; }
SIMINDEX_LANES bool any(Vector x) { return (x[0] | x[1]) != 0; }
SIMINDEX_LANES Vector both(Vector a, Vector b) { return a & b; }
SIMINDEX_LANES Vector inverted(Vector a) { return ~a; }
SIMINDEX_LANES Vector pick(Vector mask, Vector a, Vector b) { return b ^ ((a ^ b) & mask); }
SIMINDEX_LANES Vector majority(Vector a, Vector b, Vector c) { return (a & b) | ((a | b) & c); }
template <int kShift>
SIMINDEX_LANES Vector shifted_up(Vector a) { return a << kShift; }
template <int kShift>
SIMINDEX_LANES Vector shifted_down(Vector a) { return a >> kShift; }

// sum, carry = sum + a + b
SIMINDEX_LANES Vector add_two(Vector& sum, Vector a, Vector b) {
  const Vector half = sum ^ a;
  const Vector carry = (sum & a) | (half & b);
  sum = half ^ b;
  return carry;
}
// sum, carry = sum + a
SIMINDEX_LANES Vector add_one(Vector& sum, Vector a) {
  const Vector carry = sum & a;
  sum ^= a;
  return carry;
}

template <int kLines>
SIMINDEX_LANES std::uint32_t near_eight(const std::uint64_t* rows, std::size_t words,
                                        const std::uint64_t* query, std::uint32_t limit,
                                        std::uint16_t* distances) {
  std::uint32_t near = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto bits = static_cast<std::uint32_t>(distance(rows + i * words, query, words));
    distances[i] = static_cast<std::uint16_t>(bits);
    near |= (bits <= limit ? 1u : 0u) << i;
  }
  return near;
}

#include "methods/scan/topscan.inc"
#include "methods/scan/topscan_rows.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {

using avx2::distance;

using Vector = __m256i;
constexpr std::size_t kWords = 4;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#define SIMINDEX_LANES SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return _mm256_setzero_si256(); }
SIMINDEX_LANES Vector fill(std::uint64_t x) {
  return _mm256_set1_epi64x(static_cast<long long>(x));
}
SIMINDEX_LANES Vector load(const std::uint64_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), x);
}
SIMINDEX_LANES bool any(Vector x) { return _mm256_testz_si256(x, x) == 0; }
SIMINDEX_LANES Vector both(Vector a, Vector b) { return _mm256_and_si256(a, b); }
SIMINDEX_LANES Vector inverted(Vector a) {
  return _mm256_xor_si256(a, _mm256_set1_epi64x(-1));
}
SIMINDEX_LANES Vector pick(Vector mask, Vector a, Vector b) {
  return _mm256_xor_si256(b, _mm256_and_si256(_mm256_xor_si256(a, b), mask));
}
SIMINDEX_LANES Vector majority(Vector a, Vector b, Vector c) {
  return _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(_mm256_or_si256(a, b), c));
}
template <int kShift>
SIMINDEX_LANES Vector shifted_up(Vector a) { return _mm256_slli_epi64(a, kShift); }
template <int kShift>
SIMINDEX_LANES Vector shifted_down(Vector a) { return _mm256_srli_epi64(a, kShift); }

SIMINDEX_LANES Vector add_two(Vector& sum, Vector a, Vector b) {
  const Vector half = _mm256_xor_si256(a, b);
  const Vector carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(half, sum));
  sum = _mm256_xor_si256(half, sum);
  return carry;
}
SIMINDEX_LANES Vector add_one(Vector& sum, Vector a) {
  const Vector carry = _mm256_and_si256(sum, a);
  sum = _mm256_xor_si256(sum, a);
  return carry;
}

template <int kLines>
SIMINDEX_LANES std::uint32_t near_eight(const std::uint64_t* rows, std::size_t words,
                                        const std::uint64_t* query, std::uint32_t limit,
                                        std::uint16_t* distances) {
  std::uint32_t near = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint32_t bits = 0;
    if constexpr (kLines == 0) {
      bits = static_cast<std::uint32_t>(distance(rows + i * words, query, words));
    } else {
      __m256i sums = _mm256_setzero_si256();
      for (std::size_t w = 0; w < 8 * kLines; w += 4)
        sums = _mm256_add_epi64(
            sums, avx2::popcount4(_mm256_xor_si256(
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + i * words + w)),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + w)))));
      const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sums),
                                         _mm256_extracti128_si256(sums, 1));
      bits = static_cast<std::uint32_t>(
          _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))));
    }
    distances[i] = static_cast<std::uint16_t>(bits);
    near |= (bits <= limit ? 1u : 0u) << i;
  }
  return near;
}

#include "methods/scan/topscan.inc"
#include "methods/scan/topscan_rows.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace avx2_level

namespace avx512_level {

using avx2::distance;

using Vector = __m512i;
constexpr std::size_t kWords = 8;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#define SIMINDEX_LANES SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return _mm512_setzero_si512(); }
SIMINDEX_LANES Vector fill(std::uint64_t x) { return _mm512_set1_epi64(static_cast<long long>(x)); }
SIMINDEX_LANES Vector load(const std::uint64_t* from) { return _mm512_load_si512(from); }
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) { _mm512_store_si512(to, x); }
SIMINDEX_LANES bool any(Vector x) { return bits_of(_mm512_test_epi64_mask(x, x)) != 0; }
SIMINDEX_LANES Vector both(Vector a, Vector b) { return _mm512_and_si512(a, b); }
SIMINDEX_LANES Vector inverted(Vector a) { return _mm512_ternarylogic_epi64(a, a, a, 0x55); }
SIMINDEX_LANES Vector pick(Vector mask, Vector a, Vector b) {
  return _mm512_ternarylogic_epi64(mask, a, b, 0xca);
}
SIMINDEX_LANES Vector majority(Vector a, Vector b, Vector c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0xe8);
}
template <int kShift>
SIMINDEX_LANES Vector shifted_up(Vector a) { return _mm512_slli_epi64(a, kShift); }
template <int kShift>
SIMINDEX_LANES Vector shifted_down(Vector a) { return _mm512_srli_epi64(a, kShift); }

// The carry from a, b and the new sum: where a and b differ it is the sum's complement. So no register
// is needed by both operations, which would cost a copy.
SIMINDEX_LANES Vector add_two(Vector& sum, Vector a, Vector b) {
  sum = _mm512_ternarylogic_epi64(sum, a, b, 0x96);
  return _mm512_ternarylogic_epi64(a, b, sum, 0xd4);
}
SIMINDEX_LANES Vector add_one(Vector& sum, Vector a) {
  const Vector carry = _mm512_and_si512(sum, a);
  sum = _mm512_xor_si512(sum, a);
  return carry;
}

template <int kLines>
SIMINDEX_LANES __m512i row_counts(const std::uint64_t* row, std::size_t words,
                                  const std::uint64_t* query) {
  // Bytes are added up to 31 lines before they could overflow.
  __m512i sums = _mm512_setzero_si512();
  const std::size_t width = kLines == 0 ? words : 8 * kLines;
  for (std::size_t begin = 0; begin < width; begin += 248) {
    __m512i bytes = _mm512_setzero_si512();
    const std::size_t end = std::min<std::size_t>(width, begin + 248);
    for (std::size_t w = begin; w < end; w += 8) {
      const __mmask8 present =
          kLines == 0 ? avx512::lowest(static_cast<std::uint32_t>(width - w)) : __mmask8{0xff};
      const __m512i x = _mm512_xor_si512(_mm512_maskz_loadu_epi64(present, row + w),
                                         _mm512_maskz_loadu_epi64(present, query + w));
      bytes = _mm512_add_epi8(bytes, avx512::byte_counts(x));
    }
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(bytes, _mm512_setzero_si512()));
  }
  return sums;
}

#include "methods/scan/topscan_eight.inc"
#include "methods/scan/topscan.inc"
#include "methods/scan/topscan_rows.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace avx512_level

namespace avx512_vpopcntdq_level {

using avx2::distance;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#define SIMINDEX_LANES SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE

template <int kLines>
SIMINDEX_LANES __m512i row_counts(const std::uint64_t* row, std::size_t words,
                                  const std::uint64_t* query) {
  __m512i sums = _mm512_setzero_si512();
  const std::size_t width = kLines == 0 ? words : 8 * kLines;
  for (std::size_t w = 0; w < width; w += 8) {
    const __mmask8 present =
        kLines == 0 ? avx512::lowest(static_cast<std::uint32_t>(width - w)) : __mmask8{0xff};
    sums = _mm512_add_epi64(
        sums, _mm512_popcnt_epi64(_mm512_xor_si512(_mm512_maskz_loadu_epi64(present, row + w),
                                                   _mm512_maskz_loadu_epi64(present, query + w))));
  }
  return sums;
}

#include "methods/scan/topscan_eight.inc"
#include "methods/scan/topscan_rows.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace avx512_vpopcntdq_level
#endif

template <class Slab>
void by_columns(const TopRows& table, const std::uint64_t* queries, std::size_t k,
                std::size_t threads, const std::function<bool()>& poll, std::size_t lane_words,
                std::vector<TopK>& all) {
  const std::size_t m = all.size();
  const Picks picks(queries, m, table.words, lane_words);
  struct Scratch {
    Slab slab;
    std::vector<TopK> tops;
  };
  const std::size_t rows = 64 * lane_words;
  split((table.n + rows - 1) / rows, threads,
        [&] { return Scratch{Slab(table, picks), std::vector<TopK>(m, TopK(k))}; },
        [&](Scratch& scratch, std::size_t i, auto&) { scratch.slab.search(i, scratch.tops); },
        [&](const Scratch& scratch) {
          for (std::size_t q = 0; q < m; ++q) all[q].merge(scratch.tops[q]);
        },
        poll);
}

void by_rows(const TopRows& table, const std::uint64_t* queries, std::size_t threads, int level,
             std::size_t k, const std::function<bool()>& poll, std::vector<TopK>& all) {
  auto* search = &portable_level::search_rows;
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq)
    search = &avx512_vpopcntdq_level::search_rows;
  else if (level >= kAvx512)
    search = &avx512_level::search_rows;
  else if (level >= kAvx2)
    search = &avx2_level::search_rows;
#else
  (void)level;
#endif
  const std::size_t m = all.size();
  // One query may as well run on; several find a slab in the cache.
  const std::size_t bytes = m == 1 ? 16 * kSlabBytes : kSlabBytes;
  const std::size_t slab = std::max<std::size_t>(16, bytes / (8 * table.words));
  split((table.n + slab - 1) / slab, threads, [&] { return std::vector<TopK>(m, TopK(k)); },
        [&](std::vector<TopK>& tops, std::size_t i, auto&) {
          const std::size_t end = std::min(table.n, (i + 1) * slab);
          for (std::size_t q = 0; q < m; ++q)
            search(table, i * slab, end, queries + q * table.words, q == 0, tops[q]);
        },
        [&](const std::vector<TopK>& tops) {
          for (std::size_t q = 0; q < m; ++q) all[q].merge(tops[q]);
        },
        poll);
}

}  // namespace

std::vector<TopK> top_scan(const TopRows& table, const std::uint64_t* queries, std::size_t m,
                           std::size_t k, std::size_t threads, int level,
                           const std::function<bool()>& poll) {
  std::vector<TopK> all(m, TopK(k));
  if (m == 0 || table.n == 0) return all;
  if (m < kFewest) {
    by_rows(table, queries, threads, level, k, poll, all);
    return all;
  }
  for (std::size_t begin = 0; begin < m; begin += kPart) {
    std::vector<TopK> part(std::min(kPart, m - begin), TopK(k));
    const std::uint64_t* asked = queries + begin * table.words;
#if SIMINDEX_X86
    if (level >= kAvx512)
      by_columns<avx512_level::Slab>(table, asked, k, threads, poll, 8, part);
    else if (level >= kAvx2)
      by_columns<avx2_level::Slab>(table, asked, k, threads, poll, 4, part);
    else
#endif
      by_columns<portable_level::Slab>(table, asked, k, threads, poll, 2, part);
    std::move(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return all;
}

}  // namespace simindex
