#include "simhash/bit_sums.hpp"

#include <cstring>

#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"

namespace simindex {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kMix1 = 0xbf58476d1ce4e5b9;
constexpr std::uint64_t kMix2 = 0x94d049bb133111eb;

// Weights that a level adds whole.
struct WeightsAsTheyAre {
  const std::int32_t* each;
  WeightsAsTheyAre(const std::int32_t* weights, std::size_t) : each(weights) {}
};

namespace portable {

using Vector = std::uint64_t;
constexpr std::size_t kWords = 1;
constexpr std::size_t kFewWords = 1;

#define SIMINDEX_LEVEL_TARGET
#define SIMINDEX_LANES SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return 0; }
SIMINDEX_LANES Vector load(const std::uint64_t* from) { return *from; }
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) { *to = x; }
SIMINDEX_LANES Vector both(Vector a, Vector b) { return a & b; }
SIMINDEX_LANES Vector either(Vector a, Vector b) { return a | b; }
SIMINDEX_LANES Vector one_of(Vector a, Vector b) { return a ^ b; }
SIMINDEX_LANES Vector odd(Vector a, Vector b, Vector c) { return one_of(one_of(a, b), c); }
SIMINDEX_LANES Vector two_of(Vector a, Vector b, Vector c) {
  return either(both(a, b), both(one_of(a, b), c));
}

SIMINDEX_LANES Vector all_of(std::uint64_t word) { return word; }
SIMINDEX_LANES Vector plus(Vector a, Vector b) { return a + b; }
SIMINDEX_LANES Vector steps() { return 0; }

SIMINDEX_LANES Vector mixed(Vector z) {
  z = (z ^ (z >> 30)) * kMix1;
  z = (z ^ (z >> 27)) * kMix2;
  return z ^ (z >> 31);
}

// Comparing with a table of single bits, unlike shifting by the column, vectorises without AVX2.
struct SingleBits {
  std::uint32_t bit[32];
  constexpr SingleBits() : bit() {
    for (std::size_t j = 0; j < 32; ++j) bit[j] = std::uint32_t{1} << j;
  }
};
alignas(64) constexpr SingleBits kSingle;

SIMINDEX_LANES void add_plane(Vector plane, std::int32_t weight, std::int32_t* sums) {
  const auto low = static_cast<std::uint32_t>(plane);
  const auto high = static_cast<std::uint32_t>(plane >> 32);
  for (std::size_t j = 0; j < 32; ++j) {
    sums[j] += (low & kSingle.bit[j]) == kSingle.bit[j] ? weight : 0;
  }
  for (std::size_t j = 0; j < 32; ++j) {
    sums[32 + j] += (high & kSingle.bit[j]) == kSingle.bit[j] ? weight : 0;
  }
}

SIMINDEX_LANES void add_planes(const std::uint64_t* words, std::size_t n, std::int32_t* sums) {
  for (std::size_t p = 0; p < n; ++p) add_plane(words[p * kWords], std::int32_t{1} << p, sums);
}

using Weights = WeightsAsTheyAre;

SIMINDEX_LANES void weigh_some(const std::uint64_t* bits, const Weights& weights, std::size_t n,
                               std::int32_t* sums) {
  for (std::size_t i = 0; i < n; ++i) add_plane(bits[i], weights.each[i], sums);
}

SIMINDEX_LEVEL_TARGET std::uint64_t at_least(const std::int64_t* sums, std::int64_t least) {
  std::uint64_t bits = 0;
  for (std::size_t j = 0; j < kColumns; ++j) bits |= std::uint64_t{sums[j] >= least} << j;
  return bits;
}

#include "simhash/bit_sums.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace portable

#if SIMINDEX_X86

namespace avx2 {

using Vector = __m256i;
constexpr std::size_t kWords = 4;
constexpr std::size_t kFewWords = 2;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#define SIMINDEX_LANES SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return _mm256_setzero_si256(); }
SIMINDEX_LANES Vector load(const std::uint64_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
}
SIMINDEX_LANES Vector both(Vector a, Vector b) { return _mm256_and_si256(a, b); }
SIMINDEX_LANES Vector either(Vector a, Vector b) { return _mm256_or_si256(a, b); }
SIMINDEX_LANES Vector one_of(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
SIMINDEX_LANES Vector odd(Vector a, Vector b, Vector c) { return one_of(one_of(a, b), c); }
SIMINDEX_LANES Vector two_of(Vector a, Vector b, Vector c) {
  return either(both(a, b), both(one_of(a, b), c));
}

// Low 64 bits of the products, from three of 32 bits each.
SIMINDEX_LANES Vector times(Vector x, std::uint64_t factor) {
  const Vector low = _mm256_set1_epi64x(static_cast<long long>(factor & 0xffffffff));
  const Vector high = _mm256_set1_epi64x(static_cast<long long>(factor >> 32));
  const Vector crossed = _mm256_add_epi64(_mm256_mul_epu32(x, high),
                                          _mm256_mul_epu32(_mm256_srli_epi64(x, 32), low));
  return _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64(crossed, 32));
}

SIMINDEX_LANES Vector all_of(std::uint64_t word) {
  return _mm256_set1_epi64x(static_cast<long long>(word));
}
SIMINDEX_LANES Vector plus(Vector a, Vector b) { return _mm256_add_epi64(a, b); }
SIMINDEX_LANES Vector steps() {
  return _mm256_setr_epi64x(0, static_cast<long long>(kGolden), static_cast<long long>(2 * kGolden),
                            static_cast<long long>(3 * kGolden));
}

SIMINDEX_LANES Vector mixed(Vector z) {
  z = times(_mm256_xor_si256(z, _mm256_srli_epi64(z, 30)), kMix1);
  z = times(_mm256_xor_si256(z, _mm256_srli_epi64(z, 27)), kMix2);
  return _mm256_xor_si256(z, _mm256_srli_epi64(z, 31));
}

// Adds `weight` in the lanes of eight groups of eight columns.
SIMINDEX_LANES void add_word(std::uint64_t word, Vector weight, Vector* groups) {
  const Vector low = _mm256_set1_epi32(static_cast<int>(word));
  const Vector high = _mm256_set1_epi32(static_cast<int>(word >> 32));
  const Vector first = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (int g = 0; g < 4; ++g) {
    const Vector single = _mm256_slli_epi32(first, 8 * g);
    const Vector in_low = _mm256_cmpeq_epi32(_mm256_and_si256(low, single), single);
    const Vector in_high = _mm256_cmpeq_epi32(_mm256_and_si256(high, single), single);
    groups[g] = _mm256_add_epi32(groups[g], _mm256_and_si256(in_low, weight));
    groups[4 + g] = _mm256_add_epi32(groups[4 + g], _mm256_and_si256(in_high, weight));
  }
}

SIMINDEX_LANES void load_groups(const std::int32_t* sums, Vector* groups) {
  for (int g = 0; g < 8; ++g) {
    groups[g] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + 8 * g));
  }
}

SIMINDEX_LANES void store_groups(const Vector* groups, std::int32_t* sums) {
  for (int g = 0; g < 8; ++g) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 8 * g), groups[g]);
  }
}

SIMINDEX_LANES void add_plane(Vector plane, std::int32_t weight, std::int32_t* sums) {
  alignas(32) std::uint64_t words[kWords];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), plane);
  Vector groups[8];
  load_groups(sums, groups);
  for (const std::uint64_t word : words) add_word(word, _mm256_set1_epi32(weight), groups);
  store_groups(groups, sums);
}

SIMINDEX_LANES void add_planes(const std::uint64_t* words, std::size_t n, std::int32_t* sums) {
  Vector groups[8];
  load_groups(sums, groups);
  for (std::size_t p = 0; p < n; ++p) {
    add_word(words[p * kWords], _mm256_set1_epi32(std::int32_t{1} << p), groups);
  }
  store_groups(groups, sums);
}

using Weights = WeightsAsTheyAre;

SIMINDEX_LANES void weigh_some(const std::uint64_t* bits, const Weights& weights, std::size_t n,
                               std::int32_t* sums) {
  Vector groups[8];
  load_groups(sums, groups);
  for (std::size_t i = 0; i < n; ++i) add_word(bits[i], _mm256_set1_epi32(weights.each[i]), groups);
  store_groups(groups, sums);
}

SIMINDEX_LEVEL_TARGET std::uint64_t at_least(const std::int64_t* sums, std::int64_t least) {
  const Vector below = _mm256_set1_epi64x(least);
  std::uint64_t bits = 0;
  for (int g = 0; g < 16; ++g) {
    const Vector four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + 4 * g));
    const int less = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(below, four)));
    bits |= static_cast<std::uint64_t>(~less & 15) << (4 * g);
  }
  return bits;
}

#include "simhash/bit_sums.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace avx2

namespace avx512 {

using Vector = __m512i;
constexpr std::size_t kWords = 8;
constexpr std::size_t kFewWords = 3;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#define SIMINDEX_LANES SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return _mm512_setzero_si512(); }
SIMINDEX_LANES Vector load(const std::uint64_t* from) { return _mm512_loadu_si512(from); }
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) { _mm512_storeu_si512(to, x); }
SIMINDEX_LANES Vector both(Vector a, Vector b) { return _mm512_and_si512(a, b); }
SIMINDEX_LANES Vector one_of(Vector a, Vector b) { return _mm512_xor_si512(a, b); }
SIMINDEX_LANES Vector odd(Vector a, Vector b, Vector c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
SIMINDEX_LANES Vector two_of(Vector a, Vector b, Vector c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0xe8);
}

SIMINDEX_LANES Vector all_of(std::uint64_t word) {
  return _mm512_set1_epi64(static_cast<long long>(word));
}
SIMINDEX_LANES Vector plus(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
SIMINDEX_LANES Vector steps() {
  return _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), all_of(kGolden));
}

SIMINDEX_LANES Vector mixed(Vector z) {
  z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 30));
  z = _mm512_mullo_epi64(z, _mm512_set1_epi64(static_cast<long long>(kMix1)));
  z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 27));
  z = _mm512_mullo_epi64(z, _mm512_set1_epi64(static_cast<long long>(kMix2)));
  return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

// Adds `weight` in the lanes of four groups of sixteen columns.
SIMINDEX_LANES void add_word(std::uint64_t word, Vector weight, Vector* groups) {
  for (int g = 0; g < 4; ++g) {
    const auto present = static_cast<__mmask16>(word >> (16 * g));
    groups[g] = _mm512_mask_add_epi32(groups[g], present, groups[g], weight);
  }
}

SIMINDEX_LANES void load_groups(const std::int32_t* sums, Vector* groups) {
  for (int g = 0; g < 4; ++g) groups[g] = _mm512_loadu_si512(sums + 16 * g);
}

SIMINDEX_LANES void store_groups(const Vector* groups, std::int32_t* sums) {
  for (int g = 0; g < 4; ++g) _mm512_storeu_si512(sums + 16 * g, groups[g]);
}

SIMINDEX_LANES void add_plane(Vector plane, std::int32_t weight, std::int32_t* sums) {
  alignas(64) std::uint64_t words[kWords];
  _mm512_store_si512(words, plane);
  Vector groups[4];
  load_groups(sums, groups);
  for (const std::uint64_t word : words) add_word(word, _mm512_set1_epi32(weight), groups);
  store_groups(groups, sums);
}

SIMINDEX_LANES void add_planes(const std::uint64_t* words, std::size_t n, std::int32_t* sums) {
  Vector groups[4];
  load_groups(sums, groups);
  for (std::size_t p = 0; p < n; ++p) {
    add_word(words[p * kWords], _mm512_set1_epi32(std::int32_t{1} << p), groups);
  }
  store_groups(groups, sums);
}

// The bytes of some weights, each twice in a lane: a lane of 16 bits holds the sum of kWeighed bytes, and
// 32 columns are added at once where lanes of 32 bits hold 16.
struct Weights {
  alignas(64) std::uint32_t bytes[4][kWeighed];
  int parts = 1;  // bytes that are not 0 in all of them

  SIMINDEX_LANES Weights(const std::int32_t* weights, std::size_t n) {
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < n; ++i) any |= static_cast<std::uint32_t>(weights[i]);
    while (parts < 4 && any >> (8 * parts) != 0) ++parts;
    for (int part = 0; part < parts; ++part) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t byte = static_cast<std::uint32_t>(weights[i]) >> (8 * part) & 255;
        bytes[part][i] = byte << 16 | byte;
      }
    }
  }
};

template <int kParts>
SIMINDEX_LANES void weigh_parts(const std::uint64_t* bits, const Weights& weights, std::size_t n,
                                std::int32_t* sums) {
  Vector low[kParts];
  Vector high[kParts];
  for (int part = 0; part < kParts; ++part) low[part] = high[part] = zero();
  for (std::size_t i = 0; i < n; ++i) {
    const auto in_low = static_cast<__mmask32>(bits[i]);
    const auto in_high = static_cast<__mmask32>(bits[i] >> 32);
    for (int part = 0; part < kParts; ++part) {
      const Vector byte = _mm512_set1_epi32(static_cast<int>(weights.bytes[part][i]));
      low[part] = _mm512_mask_add_epi16(low[part], in_low, low[part], byte);
      high[part] = _mm512_mask_add_epi16(high[part], in_high, high[part], byte);
    }
  }
  Vector groups[4];
  load_groups(sums, groups);
  for (int part = 0; part < kParts; ++part) {
    const auto shift = static_cast<unsigned>(8 * part);
    for (int g = 0; g < 4; ++g) {
      const Vector& from = g < 2 ? low[part] : high[part];
      const __m256i half =
          g % 2 == 0 ? _mm512_castsi512_si256(from) : _mm512_extracti64x4_epi64(from, 1);
      groups[g] =
          _mm512_add_epi32(groups[g], _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), shift));
    }
  }
  store_groups(groups, sums);
}

SIMINDEX_LEVEL_TARGET void weigh_some(const std::uint64_t* bits, const Weights& weights,
                                      std::size_t n, std::int32_t* sums) {
  if (weights.parts == 1) return weigh_parts<1>(bits, weights, n, sums);
  if (weights.parts == 2) return weigh_parts<2>(bits, weights, n, sums);
  if (weights.parts == 3) return weigh_parts<3>(bits, weights, n, sums);
  weigh_parts<4>(bits, weights, n, sums);
}

SIMINDEX_LEVEL_TARGET std::uint64_t at_least(const std::int64_t* sums, std::int64_t least) {
  const Vector below = _mm512_set1_epi64(least);
  std::uint64_t bits = 0;
  for (int g = 0; g < 8; ++g) {
    const __mmask8 some = _mm512_cmpge_epi64_mask(_mm512_loadu_si512(sums + 8 * g), below);
    bits |= std::uint64_t{bits_of(some)} << (8 * g);
  }
  return bits;
}

#include "simhash/bit_sums.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace avx512

#endif

}  // namespace

#if SIMINDEX_X86
#define SIMINDEX_CHOOSE(call)                  \
  if (level >= kAvx512) return avx512::call;   \
  if (level >= kAvx2) return avx2::call;       \
  return portable::call
#else
#define SIMINDEX_CHOOSE(call) \
  (void)level;                \
  return portable::call
#endif

void draw(const std::uint64_t* hashes, std::size_t n, std::uint64_t index, std::uint64_t* out,
          int level) {
  if (index == 0) {
    if (out != hashes && n != 0) std::memcpy(out, hashes, n * sizeof *hashes);
    return;
  }
  SIMINDEX_CHOOSE(draw(hashes, n, index * kGolden, out));
}

void count_bits(const std::uint64_t* bits, std::size_t n, std::int32_t* sums, int level) {
  SIMINDEX_CHOOSE(count_bits(bits, n, sums));
}

void weigh_bits(const std::uint64_t* bits, const std::int32_t* weights, std::size_t n,
                std::int32_t* sums, int level) {
  SIMINDEX_CHOOSE(weigh_bits(bits, weights, n, sums));
}

void count_draws(const std::uint64_t* hashes, std::size_t n, std::size_t words, std::int32_t* sums,
                 int level) {
  SIMINDEX_CHOOSE(count_draws(hashes, n, words, sums));
}

void weigh_draws(const std::uint64_t* hashes, const std::int32_t* weights, std::size_t n,
                 std::size_t words, std::int32_t* sums, int level) {
  SIMINDEX_CHOOSE(weigh_draws(hashes, weights, n, words, sums));
}

void add_multiples(const std::int32_t* counted, std::size_t n, std::int64_t factor,
                   std::int64_t* sums, int level) {
  SIMINDEX_CHOOSE(add_multiples(counted, n, factor, sums));
}

std::uint64_t at_least(const std::int64_t* sums, std::int64_t least, int level) {
  SIMINDEX_CHOOSE(at_least(sums, least));
}

}  // namespace simindex
