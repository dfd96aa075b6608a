#include "simhash.hpp"

#include <algorithm>
#include <array>

#include "cpu.hpp"

#if SIMINDEX_X86
#include <immintrin.h>
#endif

namespace simindex {
namespace {

// Blocks keep the running sums in 32-bit lanes: 256 features below 2^23 cannot pass 2^31.
constexpr std::size_t kBlock = 256;
constexpr std::uint64_t kHeavy = std::uint64_t{1} << 23;

std::uint64_t expand(std::uint64_t hash, std::size_t word) {
  if (word == 0) return hash;
  std::uint64_t z = hash + word * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// One block: adds weights[i] to lane[j] for every bit j (0 = lowest) set in bits[i].
using AddBlock = void (*)(const std::uint64_t* bits, const std::int32_t* weights, std::size_t n,
                          std::int32_t* lanes);

void add_block_portable(const std::uint64_t* bits, const std::int32_t* weights, std::size_t n,
                        std::int32_t* lanes) {
  // Comparing with a table of single bits, unlike shifting by the lane, vectorises without AVX2.
  alignas(64) std::uint32_t single[32];
  for (std::size_t j = 0; j < 32; ++j) single[j] = std::uint32_t{1} << j;
  for (std::size_t i = 0; i < n; ++i) {
    const auto low = static_cast<std::uint32_t>(bits[i]);
    const auto high = static_cast<std::uint32_t>(bits[i] >> 32);
    const std::int32_t weight = weights[i];
    for (std::size_t j = 0; j < 32; ++j) lanes[j] += (low & single[j]) == single[j] ? weight : 0;
    for (std::size_t j = 0; j < 32; ++j) {
      lanes[32 + j] += (high & single[j]) == single[j] ? weight : 0;
    }
  }
}

#if SIMINDEX_X86

SIMINDEX_TARGET_AVX2 void add_block_avx2(const std::uint64_t* bits, const std::int32_t* weights,
                                         std::size_t n, std::int32_t* lanes) {
  const __m256i first = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i single[4] = {first, _mm256_slli_epi32(first, 8), _mm256_slli_epi32(first, 16),
                             _mm256_slli_epi32(first, 24)};
  __m256i sums[8];
  for (auto& sum : sums) sum = _mm256_setzero_si256();
  for (std::size_t i = 0; i < n; ++i) {
    const __m256i weight = _mm256_set1_epi32(weights[i]);
    const __m256i low = _mm256_set1_epi32(static_cast<int>(bits[i]));
    const __m256i high = _mm256_set1_epi32(static_cast<int>(bits[i] >> 32));
    for (int g = 0; g < 4; ++g) {
      const __m256i in_low = _mm256_cmpeq_epi32(_mm256_and_si256(low, single[g]), single[g]);
      const __m256i in_high = _mm256_cmpeq_epi32(_mm256_and_si256(high, single[g]), single[g]);
      sums[g] = _mm256_add_epi32(sums[g], _mm256_and_si256(in_low, weight));
      sums[4 + g] = _mm256_add_epi32(sums[4 + g], _mm256_and_si256(in_high, weight));
    }
  }
  for (int g = 0; g < 8; ++g) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes + 8 * g), sums[g]);
  }
}

SIMINDEX_TARGET_AVX512 void add_block_avx512(const std::uint64_t* bits,
                                             const std::int32_t* weights, std::size_t n,
                                             std::int32_t* lanes) {
  __m512i sums[4];
  for (auto& sum : sums) sum = _mm512_setzero_si512();
  for (std::size_t i = 0; i < n; ++i) {
    const __m512i weight = _mm512_set1_epi32(weights[i]);
    for (int g = 0; g < 4; ++g) {
      const auto set = static_cast<__mmask16>(bits[i] >> (16 * g));
      sums[g] = _mm512_mask_add_epi32(sums[g], set, sums[g], weight);
    }
  }
  for (int g = 0; g < 4; ++g) _mm512_storeu_si512(lanes + 16 * g, sums[g]);
}

#endif

AddBlock add_block_of(int level) {
#if SIMINDEX_X86
  if (level == kAvx512) return add_block_avx512;
  if (level == kAvx2) return add_block_avx2;
#else
  (void)level;
#endif
  return add_block_portable;
}

}  // namespace

std::uint32_t IdfTable::find(std::uint64_t hash) const {
  std::size_t low = 0;  // hashes before low are smaller, from high on larger
  std::size_t high = std::min(hashes.size(), steps.size());
  for (int looks = 0; low < high; ++looks) {
    std::size_t middle = low + (high - low) / 2;
    if (looks < 8) {
      const std::uint64_t least = hashes[low];
      const std::uint64_t most = hashes[high - 1];
      if (hash < least || hash > most) return unseen;
      if (most > least) {
        const double share = static_cast<double>(hash - least) / static_cast<double>(most - least);
        middle = low + std::min(static_cast<std::size_t>(share * static_cast<double>(high - 1 - low)),
                                high - 1 - low);
      }
    }
    if (hashes[middle] == hash) return steps[middle];
    if (hashes[middle] < hash) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return unseen;
}

Simhash::Simhash(std::size_t words, int level) : words_(words), level_(level), sums_(words * 64) {}

void Simhash::sum(std::span<const std::uint64_t> hashes, std::span<const std::uint64_t> weights) {
  std::fill(sums_.begin(), sums_.end(), 0);
  const AddBlock add_block = add_block_of(level_);
  std::array<std::uint64_t, kBlock> bits;
  std::array<std::int32_t, kBlock> light;
  alignas(64) std::array<std::int32_t, 64> lanes;
  std::int64_t total = 0;
  for (std::size_t start = 0; start < hashes.size(); start += kBlock) {
    const std::size_t n = std::min(kBlock, hashes.size() - start);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t weight = weights[start + i];
      total += static_cast<std::int64_t>(weight);
      light[i] = weight < kHeavy ? static_cast<std::int32_t>(weight) : 0;
    }
    for (std::size_t word = 0; word < words_; ++word) {
      std::int64_t* const sums = sums_.data() + 64 * word;
      for (std::size_t i = 0; i < n; ++i) {
        bits[i] = expand(hashes[start + i], word);
        if (weights[start + i] < kHeavy) continue;
        for (std::size_t j = 0; j < 64; ++j) {
          if ((bits[i] >> (63 - j)) & 1) sums[j] += static_cast<std::int64_t>(weights[start + i]);
        }
      }
      lanes.fill(0);
      add_block(bits.data(), light.data(), n, lanes.data());
      for (std::size_t j = 0; j < 64; ++j) sums[j] += lanes[63 - j];
    }
  }
  for (std::int64_t& sum : sums_) sum = 2 * sum - total;
}

}  // namespace simindex
