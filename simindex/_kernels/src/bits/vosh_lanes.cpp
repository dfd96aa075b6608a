#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "bits/vosh.hpp"
#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"

// Every level computes the same values bit by bit: sums are added in the same order (16 partial
// sums, halved four times) and nothing is contracted to a fused multiply-add.
//
// No level gathers: where microcode guards gathers, one of 16 lanes takes 100 cycles, and 16 loads a
// fifth of that.

namespace simindex {
namespace {

constexpr std::int32_t kNumberBits = kMaxNetworkedBits - 1;
constexpr std::int32_t kAbsolute = 0x7fffffff;

namespace portable {

inline float sum_of_squares(const float* row, std::size_t bits) {
  float sums[16] = {};
  for (std::size_t j = 0; j < bits; j += 16)
    for (std::size_t lane = 0; lane < 16; ++lane) sums[lane] += row[j + lane] * row[j + lane];
  for (std::size_t half = 8; half != 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

inline void transpose_keys(const float* weights, std::size_t stride, std::size_t count,
                           std::size_t t, LaneWords* key) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const float* row = weights + (lane < count ? lane : count - 1) * stride;
    for (std::size_t j = 0; j < t; ++j) {
      std::int32_t word;
      std::memcpy(&word, row + j, sizeof word);
      key[j].lane[lane] = (word & kAbsolute & ~kNumberBits) | static_cast<std::int32_t>(j);
    }
  }
}

SIMINDEX_INLINE void compare_exchange(std::int32_t* __restrict low, std::int32_t* __restrict high) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::int32_t a = low[lane];
    const std::int32_t b = high[lane];
    low[lane] = a < b ? a : b;
    high[lane] = a < b ? b : a;
  }
}

inline void look_up(const std::int32_t* key, const float* scale, float last, const float* costs,
                    float* cost, std::int32_t* bit) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const float entry = std::bit_cast<float>(key[lane] & ~kNumberBits) * scale[lane];
    cost[lane] = costs[static_cast<std::int32_t>(entry < last ? entry : last)];
    bit[lane] = std::bit_cast<std::int32_t>(0x80000000u >> (key[lane] & kNumberBits));
  }
}

inline void sum_set(const LaneFloats* cost, const LaneWords* bit,
                    const std::uint8_t* ranks, std::size_t size, std::int32_t number,
                    std::int32_t keep, std::int32_t* set, std::int32_t* mask) {
  float sum[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sum[lane] = cost[ranks[0]].lane[lane];
    mask[lane] = bit[ranks[0]].lane[lane];
  }
  for (std::size_t i = 1; i < size; ++i)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sum[lane] += cost[ranks[i]].lane[lane];
      mask[lane] |= bit[ranks[i]].lane[lane];
    }
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    set[lane] = (std::bit_cast<std::int32_t>(sum[lane]) & keep) | number;
}

inline void pick(const std::int32_t* set, std::int32_t number_bits, const std::int32_t* set_masks,
                 std::uint32_t* masks) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const auto number = static_cast<std::size_t>(set[lane] & number_bits);
    masks[lane] = static_cast<std::uint32_t>(set_masks[number * kLanes + lane]);
  }
}

#define SIMINDEX_LEVEL_TARGET
#include "bits/vosh_lanes.inc"
#undef SIMINDEX_LEVEL_TARGET

}  // namespace portable

#if SIMINDEX_X86
namespace avx2 {

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#define SIMINDEX_LANE SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE

SIMINDEX_LANE __m256i load(const std::int32_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
SIMINDEX_LANE void store(std::int32_t* to, __m256i value) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), value);
}

SIMINDEX_LANE float sum_of_squares(const float* row, std::size_t bits) {
  __m256 a = _mm256_setzero_ps();
  __m256 b = _mm256_setzero_ps();
  for (std::size_t j = 0; j < bits; j += 16) {
    const __m256 x = _mm256_loadu_ps(row + j);
    const __m256 y = _mm256_loadu_ps(row + j + 8);
    a = _mm256_add_ps(a, _mm256_mul_ps(x, x));
    b = _mm256_add_ps(b, _mm256_mul_ps(y, y));
  }
  a = _mm256_add_ps(a, b);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

SIMINDEX_LANE void transpose_keys(const float* weights, std::size_t stride, std::size_t count,
                                  std::size_t t, LaneWords* key) {
  portable::transpose_keys(weights, stride, count, t, key);
}

SIMINDEX_LANE void compare_exchange(std::int32_t* low, std::int32_t* high) {
  const __m256i a = load(low);
  const __m256i b = load(low + 8);
  const __m256i x = load(high);
  const __m256i y = load(high + 8);
  store(low, _mm256_min_epi32(a, x));
  store(low + 8, _mm256_min_epi32(b, y));
  store(high, _mm256_max_epi32(a, x));
  store(high + 8, _mm256_max_epi32(b, y));
}

SIMINDEX_LANE void look_up(const std::int32_t* key, const float* scale, float last,
                           const float* costs, float* cost, std::int32_t* bit) {
  const __m256i numbers = _mm256_set1_epi32(kNumberBits);
  for (std::size_t lane = 0; lane < kLanes; lane += 8) {
    const __m256i word = load(key + lane);
    const __m256 entry = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_andnot_si256(numbers, word)),
                                       _mm256_load_ps(scale + lane));
    const __m256i at = _mm256_cvttps_epi32(_mm256_min_ps(entry, _mm256_set1_ps(last)));
    alignas(32) std::int32_t entries[8];
    store(entries, at);
    _mm256_store_ps(cost + lane,
                    _mm256_setr_ps(costs[entries[0]], costs[entries[1]], costs[entries[2]],
                                   costs[entries[3]], costs[entries[4]], costs[entries[5]],
                                   costs[entries[6]], costs[entries[7]]));
    store(bit + lane, _mm256_srlv_epi32(_mm256_set1_epi32(std::numeric_limits<std::int32_t>::min()),
                                        _mm256_and_si256(numbers, word)));
  }
}

SIMINDEX_LANE void sum_set(const LaneFloats* cost, const LaneWords* bit,
                           const std::uint8_t* ranks, std::size_t size, std::int32_t number,
                           std::int32_t keep, std::int32_t* set, std::int32_t* mask) {
  for (std::size_t lane = 0; lane < kLanes; lane += 8) {
    __m256 sum = _mm256_load_ps(cost[ranks[0]].lane + lane);
    __m256i bits = load(bit[ranks[0]].lane + lane);
    for (std::size_t i = 1; i < size; ++i) {
      sum = _mm256_add_ps(sum, _mm256_load_ps(cost[ranks[i]].lane + lane));
      bits = _mm256_or_si256(bits, load(bit[ranks[i]].lane + lane));
    }
    store(set + lane,
          _mm256_or_si256(_mm256_and_si256(_mm256_castps_si256(sum), _mm256_set1_epi32(keep)),
                          _mm256_set1_epi32(number)));
    store(mask + lane, bits);
  }
}

SIMINDEX_LANE void pick(const std::int32_t* set, std::int32_t number_bits,
                        const std::int32_t* set_masks, std::uint32_t* masks) {
  portable::pick(set, number_bits, set_masks, masks);
}

#include "bits/vosh_lanes.inc"
#undef SIMINDEX_LANE
#undef SIMINDEX_LEVEL_TARGET

}  // namespace avx2

namespace avx512 {

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#define SIMINDEX_LANE SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE

// A product no compiler fuses with the addition that follows.
SIMINDEX_LANE __m512 product(__m512 a, __m512 b) {
  return _mm512_mul_round_ps(a, b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SIMINDEX_LANE float sum_of_squares(const float* row, std::size_t bits) {
  __m512 sums = _mm512_setzero_ps();
  for (std::size_t j = 0; j < bits; j += 16) {
    const __m512 x = _mm512_loadu_ps(row + j);
    sums = _mm512_add_ps(sums, product(x, x));
  }
  const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(sums), _mm512_extractf32x8_ps(sums, 1));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

// to[lane] = table[at[lane]]. The compiler must not see that `lanes` was a register: it would take it
// apart lane by lane, twice as slowly.
SIMINDEX_LANE void look_up_all(const std::int32_t* table, __m512i at, std::int32_t* to) {
  alignas(64) std::uint32_t lanes[kLanes];
  _mm512_store_si512(lanes, at);
  asm volatile("" : "+m"(lanes));
#pragma GCC unroll 16
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    to[lane] = table[lanes[lane]];
    asm volatile("" : : : );
  }
}

// Four weights of the rows first, first + 4, first + 8 and first + 12, the last row standing for
// those from `count` on.
SIMINDEX_LANE __m512i four_rows(const float* weights, std::size_t stride, std::size_t count,
                                std::size_t first) {
  const auto part = [&](std::size_t row) __attribute__((always_inline)) {
    const float* from = weights + (row < count ? row : count - 1) * stride;
    return reinterpret_cast<const __m128i*>(from);
  };
  __m512i rows = _mm512_castsi128_si512(_mm_loadu_si128(part(first)));
  rows = _mm512_mask_broadcast_i32x4(rows, 0x00f0, _mm_loadu_si128(part(first + 4)));
  rows = _mm512_mask_broadcast_i32x4(rows, 0x0f00, _mm_loadu_si128(part(first + 8)));
  return _mm512_mask_broadcast_i32x4(rows, 0xf000, _mm_loadu_si128(part(first + 12)));
}

// Columns in fours: a row has at least 64 weights, so the last four are there for any t <= 32.
SIMINDEX_LANE void transpose_keys(const float* weights, std::size_t stride, std::size_t count,
                                  std::size_t t, LaneWords* key) {
  const __m512i keep = _mm512_set1_epi32(kAbsolute & ~kNumberBits);
  for (std::size_t j = 0; j < t; j += 4) {
    const __m512i a = four_rows(weights + j, stride, count, 0);
    const __m512i b = four_rows(weights + j, stride, count, 1);
    const __m512i c = four_rows(weights + j, stride, count, 2);
    const __m512i d = four_rows(weights + j, stride, count, 3);
    const __m512i low_ab = _mm512_unpacklo_epi32(a, b);
    const __m512i low_cd = _mm512_unpacklo_epi32(c, d);
    const __m512i high_ab = _mm512_unpackhi_epi32(a, b);
    const __m512i high_cd = _mm512_unpackhi_epi32(c, d);
    const __m512i columns[4] = {
        _mm512_unpacklo_epi64(low_ab, low_cd), _mm512_unpackhi_epi64(low_ab, low_cd),
        _mm512_unpacklo_epi64(high_ab, high_cd), _mm512_unpackhi_epi64(high_ab, high_cd)};
    for (std::size_t i = 0; i < 4 && j + i < t; ++i)
      _mm512_store_si512(key[j + i].lane,
                         _mm512_or_si512(_mm512_and_si512(columns[i], keep),
                                         _mm512_set1_epi32(static_cast<int>(j + i))));
  }
}

SIMINDEX_LANE void compare_exchange(std::int32_t* low, std::int32_t* high) {
  const __m512i a = _mm512_load_si512(low);
  const __m512i b = _mm512_load_si512(high);
  _mm512_store_si512(low, _mm512_min_epi32(a, b));
  _mm512_store_si512(high, _mm512_max_epi32(a, b));
}

SIMINDEX_LANE void look_up(const std::int32_t* key, const float* scale, float last,
                           const float* costs, float* cost, std::int32_t* bit) {
  const __m512i numbers = _mm512_set1_epi32(kNumberBits);
  const __m512i word = _mm512_load_si512(key);
  const __m512 entry = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_andnot_si512(numbers, word)),
                                     _mm512_load_ps(scale));
  const __m512i at = _mm512_cvttps_epi32(_mm512_min_ps(entry, _mm512_set1_ps(last)));
  look_up_all(reinterpret_cast<const std::int32_t*>(costs), at, reinterpret_cast<std::int32_t*>(cost));
  _mm512_store_si512(
      bit, _mm512_srlv_epi32(_mm512_set1_epi32(std::numeric_limits<std::int32_t>::min()),
                             _mm512_and_si512(numbers, word)));
}

SIMINDEX_LANE void sum_set(const LaneFloats* cost, const LaneWords* bit,
                           const std::uint8_t* ranks, std::size_t size, std::int32_t number,
                           std::int32_t keep, std::int32_t* set, std::int32_t* mask) {
  __m512 sum = _mm512_load_ps(cost[ranks[0]].lane);
  __m512i bits = _mm512_load_si512(bit[ranks[0]].lane);
  for (std::size_t i = 1; i < size; ++i) {
    sum = _mm512_add_ps(sum, _mm512_load_ps(cost[ranks[i]].lane));
    bits = _mm512_or_si512(bits, _mm512_load_si512(bit[ranks[i]].lane));
  }
  _mm512_store_si512(
      set, _mm512_or_si512(_mm512_and_si512(_mm512_castps_si512(sum), _mm512_set1_epi32(keep)),
                           _mm512_set1_epi32(number)));
  _mm512_store_si512(mask, bits);
}

SIMINDEX_LANE void pick(const std::int32_t* set, std::int32_t number_bits,
                        const std::int32_t* set_masks, std::uint32_t* masks) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i number = _mm512_and_si512(_mm512_load_si512(set), _mm512_set1_epi32(number_bits));
  const __m512i at = _mm512_add_epi32(_mm512_slli_epi32(number, 4), lane);
  look_up_all(set_masks, at, reinterpret_cast<std::int32_t*>(masks));
}

#include "bits/vosh_lanes.inc"
#undef SIMINDEX_LANE
#undef SIMINDEX_LEVEL_TARGET

}  // namespace avx512
#endif

}  // namespace

VoshLanes vosh_lanes(int level) {
#if SIMINDEX_X86
  if (level >= kAvx512) return avx512::lanes_of;
  if (level >= kAvx2) return avx2::lanes_of;
#else
  (void)level;
#endif
  return portable::lanes_of;
}

}  // namespace simindex
