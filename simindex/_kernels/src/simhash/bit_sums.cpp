#include "simhash/bit_sums.hpp"

#include <cstring>

#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"

namespace simindex {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
constexpr std::uint64_t kMix1 = 0xbf58476d1ce4e5b9;
constexpr std::uint64_t kMix2 = 0x94d049bb133111eb;

namespace portable {

using Vector = std::uint64_t;
constexpr std::size_t kWords = 1;

#define SIMINDEX_LEVEL_TARGET
#define SIMINDEX_LANES SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return 0; }
SIMINDEX_LANES Vector load(const std::uint64_t* from) { return *from; }
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) { *to = x; }
SIMINDEX_LANES Vector both(Vector a, Vector b) { return a & b; }
SIMINDEX_LANES Vector either(Vector a, Vector b) { return a | b; }
SIMINDEX_LANES Vector one_of(Vector a, Vector b) { return a ^ b; }

SIMINDEX_LANES Vector mixed(Vector z, std::uint64_t step) {
  z += step;
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

void weigh_bits(const std::uint64_t* bits, const std::int32_t* weights, std::size_t n,
                std::int32_t* sums) {
  for (std::size_t i = 0; i < n; ++i) add_plane(bits[i], weights[i], sums);
}

#include "simhash/bit_sums.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace portable

#if SIMINDEX_X86

namespace avx2 {

using Vector = __m256i;
constexpr std::size_t kWords = 4;

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

// Low 64 bits of the products, from three of 32 bits each.
SIMINDEX_LANES Vector times(Vector x, std::uint64_t factor) {
  const Vector low = _mm256_set1_epi64x(static_cast<long long>(factor & 0xffffffff));
  const Vector high = _mm256_set1_epi64x(static_cast<long long>(factor >> 32));
  const Vector crossed = _mm256_add_epi64(_mm256_mul_epu32(x, high),
                                          _mm256_mul_epu32(_mm256_srli_epi64(x, 32), low));
  return _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64(crossed, 32));
}

SIMINDEX_LANES Vector mixed(Vector z, std::uint64_t step) {
  z = _mm256_add_epi64(z, _mm256_set1_epi64x(static_cast<long long>(step)));
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

SIMINDEX_LEVEL_TARGET void weigh_bits(const std::uint64_t* bits, const std::int32_t* weights,
                                      std::size_t n, std::int32_t* sums) {
  Vector groups[8];
  load_groups(sums, groups);
  for (std::size_t i = 0; i < n; ++i) add_word(bits[i], _mm256_set1_epi32(weights[i]), groups);
  store_groups(groups, sums);
}

#include "simhash/bit_sums.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_LANES

}  // namespace avx2

namespace avx512 {

using Vector = __m512i;
constexpr std::size_t kWords = 8;

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#define SIMINDEX_LANES SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE

SIMINDEX_LANES Vector zero() { return _mm512_setzero_si512(); }
SIMINDEX_LANES Vector load(const std::uint64_t* from) { return _mm512_loadu_si512(from); }
SIMINDEX_LANES void store(std::uint64_t* to, Vector x) { _mm512_storeu_si512(to, x); }
SIMINDEX_LANES Vector both(Vector a, Vector b) { return _mm512_and_si512(a, b); }
SIMINDEX_LANES Vector either(Vector a, Vector b) { return _mm512_or_si512(a, b); }
SIMINDEX_LANES Vector one_of(Vector a, Vector b) { return _mm512_xor_si512(a, b); }

SIMINDEX_LANES Vector mixed(Vector z, std::uint64_t step) {
  z = _mm512_add_epi64(z, _mm512_set1_epi64(static_cast<long long>(step)));
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

SIMINDEX_LEVEL_TARGET void weigh_bits(const std::uint64_t* bits, const std::int32_t* weights,
                                      std::size_t n, std::int32_t* sums) {
  Vector groups[4];
  load_groups(sums, groups);
  for (std::size_t i = 0; i < n; ++i) add_word(bits[i], _mm512_set1_epi32(weights[i]), groups);
  store_groups(groups, sums);
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

}  // namespace simindex
