#include "simhash/feature_hash.hpp"

#include <cstring>

#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"
#include "simhash/murmur3.hpp"

namespace simindex {
namespace {

SIMINDEX_INLINE std::uint64_t lowest_bytes(std::size_t count) {
  return count >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * count)) - 1;
}

// As murmur3_x64_128, but the tail without a branch on its length: a word of zeros changes nothing.
SIMINDEX_INLINE std::uint64_t hash_padded(const std::uint8_t* p, std::size_t size,
                                          std::uint32_t seed) {
  std::uint64_t h1 = seed;
  std::uint64_t h2 = seed;
  std::uint64_t k1 = 0;
  std::uint64_t k2 = 0;
  std::size_t rest = size;
  for (; rest >= 16; rest -= 16, p += 16) {
    std::memcpy(&k1, p, 8);
    std::memcpy(&k2, p + 8, 8);
    h1 ^= murmur3_scramble_low(k1);
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729;
    h2 ^= murmur3_scramble_high(k2);
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5;
  }
  std::memcpy(&k1, p, 8);
  std::memcpy(&k2, p + 8, 8);
  h1 ^= murmur3_scramble_low(k1 & lowest_bytes(rest));
  h2 ^= murmur3_scramble_high(k2 & lowest_bytes(rest > 8 ? rest - 8 : 0));
  h1 ^= size;
  h2 ^= size;
  h1 += h2;
  h2 += h1;
  return murmur3_finish(h1) + murmur3_finish(h2);
}

#if SIMINDEX_X86

#define SIMINDEX_LANES SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE

SIMINDEX_LANES __m512i times(__m512i x, std::uint64_t factor) {
  return _mm512_mullo_epi64(x, _mm512_set1_epi64(static_cast<long long>(factor)));
}

SIMINDEX_LANES __m512i plus(__m512i x, std::uint64_t number) {
  return _mm512_add_epi64(x, _mm512_set1_epi64(static_cast<long long>(number)));
}

SIMINDEX_LANES __m512i scramble_low(__m512i k1) {
  return times(_mm512_rol_epi64(times(k1, kMurmurC1), 31), kMurmurC2);
}

SIMINDEX_LANES __m512i scramble_high(__m512i k2) {
  return times(_mm512_rol_epi64(times(k2, kMurmurC2), 33), kMurmurC1);
}

SIMINDEX_LANES __m512i times_five(__m512i x) {
  return _mm512_add_epi64(_mm512_slli_epi64(x, 2), x);
}

SIMINDEX_LANES __m512i finish(__m512i h) {
  h = _mm512_xor_si512(h, _mm512_srli_epi64(h, 33));
  h = times(h, 0xff51afd7ed558ccd);
  h = _mm512_xor_si512(h, _mm512_srli_epi64(h, 33));
  h = times(h, 0xc4ceb9fe1a85ec53);
  return _mm512_xor_si512(h, _mm512_srli_epi64(h, 33));
}

// `count` (0 to 8) lowest bytes of each lane: a shift by 64 or more gives 0.
SIMINDEX_LANES __m512i kept_bytes(__m512i x, __m512i count) {
  const __m512i one = _mm512_set1_epi64(1);
  return _mm512_and_si512(
      x, _mm512_sub_epi64(_mm512_sllv_epi64(one, _mm512_slli_epi64(count, 3)), one));
}

// Features are hashed in rounds of 16 bytes each: their bytes are first fetched one by one (gather
// instructions are slower on processors that guard them), then eight features are mixed side by side.
// A feature with 16 bytes or more left mixes a block, one with fewer its tail, and is done.
constexpr std::size_t kTogether = 64;

SIMINDEX_TARGET_AVX512 void hash_some(const std::uint8_t* text, const std::uint64_t* starts,
                                      const std::uint64_t* ends, std::size_t n,
                                      std::uint32_t seed, std::uint64_t* hashes) {
  alignas(64) std::uint64_t at[kTogether];
  alignas(64) std::uint64_t rest[kTogether];
  alignas(64) std::uint64_t first[kTogether];
  alignas(64) std::uint64_t second[kTogether];
  alignas(64) std::uint64_t h1s[kTogether];
  alignas(64) std::uint64_t h2s[kTogether];
  const __m512i sixteen = _mm512_set1_epi64(16);
  const __m512i eight = _mm512_set1_epi64(8);
  const std::size_t vectors = (n + 7) / 8;
  for (std::size_t v = 0; v < 8 * vectors; v += 8) {
    const auto present = static_cast<__mmask8>(n - v >= 8 ? 0xff : (1u << (n - v)) - 1);
    const __m512i from = _mm512_maskz_loadu_epi64(present, starts + v);
    _mm512_store_si512(at + v, from);
    _mm512_store_si512(rest + v,
                       _mm512_sub_epi64(_mm512_maskz_loadu_epi64(present, ends + v), from));
    _mm512_store_si512(h1s + v, _mm512_set1_epi64(static_cast<long long>(std::uint64_t{seed})));
    _mm512_store_si512(h2s + v, _mm512_set1_epi64(static_cast<long long>(std::uint64_t{seed})));
  }
  alignas(64) __mmask8 open[kTogether / 8];
  for (std::size_t v = 0; v < vectors; ++v) open[v] = 0xff;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < 8 * vectors; ++i) {
      std::memcpy(first + i, text + at[i], 8);
      std::memcpy(second + i, text + at[i] + 8, 8);
    }
    for (std::size_t v = 0; v < vectors; ++v) {
      if (open[v] == 0) continue;
      const __m512i left = _mm512_load_si512(rest + 8 * v);
      const __mmask8 block = _mm512_mask_cmpge_epu64_mask(open[v], left, sixteen);
      const __m512i k1 = scramble_low(
          kept_bytes(_mm512_load_si512(first + 8 * v), _mm512_min_epu64(left, eight)));
      const __mmask8 behind = _mm512_cmpgt_epu64_mask(left, eight);
      const __m512i k2 = scramble_high(
          kept_bytes(_mm512_load_si512(second + 8 * v),
                     _mm512_min_epu64(_mm512_maskz_sub_epi64(behind, left, eight), eight)));
      __m512i h1 = _mm512_load_si512(h1s + 8 * v);
      __m512i h2 = _mm512_load_si512(h2s + 8 * v);
      h1 = _mm512_mask_xor_epi64(h1, open[v], h1, k1);
      h1 = _mm512_mask_mov_epi64(
          h1, block,
          plus(times_five(_mm512_add_epi64(_mm512_rol_epi64(h1, 27), h2)), 0x52dce729));
      h2 = _mm512_mask_xor_epi64(h2, open[v], h2, k2);
      h2 = _mm512_mask_mov_epi64(
          h2, block,
          plus(times_five(_mm512_add_epi64(_mm512_rol_epi64(h2, 31), h1)), 0x38495ab5));
      _mm512_store_si512(h1s + 8 * v, h1);
      _mm512_store_si512(h2s + 8 * v, h2);
      open[v] = block;
      if (bits_of(block) == 0) continue;
      more = true;
      _mm512_store_si512(rest + 8 * v, _mm512_mask_sub_epi64(left, block, left, sixteen));
      const __m512i where = _mm512_load_si512(at + 8 * v);
      _mm512_store_si512(at + 8 * v, _mm512_mask_add_epi64(where, block, where, sixteen));
    }
  }
  for (std::size_t v = 0; v < 8 * vectors; v += 8) {
    const auto present = static_cast<__mmask8>(n - v >= 8 ? 0xff : (1u << (n - v)) - 1);
    const __m512i size = _mm512_sub_epi64(_mm512_maskz_loadu_epi64(present, ends + v),
                                          _mm512_maskz_loadu_epi64(present, starts + v));
    __m512i h1 = _mm512_xor_si512(_mm512_load_si512(h1s + v), size);
    __m512i h2 = _mm512_xor_si512(_mm512_load_si512(h2s + v), size);
    h1 = _mm512_add_epi64(h1, h2);
    h2 = _mm512_add_epi64(h2, h1);
    _mm512_mask_storeu_epi64(hashes + v, present, _mm512_add_epi64(finish(h1), finish(h2)));
  }
}

void hash_avx512(const std::uint8_t* text, const std::uint64_t* starts, const std::uint64_t* ends,
                 std::size_t n, std::uint32_t seed, std::uint64_t* hashes) {
  for (std::size_t i = 0; i < n; i += kTogether) {
    const std::size_t some = n - i < kTogether ? n - i : kTogether;
    hash_some(text, starts + i, ends + i, some, seed, hashes + i);
  }
}

#endif

}  // namespace

void hash_features(const std::uint8_t* text, const std::uint64_t* starts, const std::uint64_t* ends,
                   std::size_t n, std::uint32_t seed, std::uint64_t* hashes, int level) {
#if SIMINDEX_X86
  if (level >= kAvx512) return hash_avx512(text, starts, ends, n, seed, hashes);
#else
  (void)level;
#endif
  for (std::size_t i = 0; i < n; ++i) {
    hashes[i] = hash_padded(text + starts[i], static_cast<std::size_t>(ends[i] - starts[i]), seed);
  }
}

}  // namespace simindex
