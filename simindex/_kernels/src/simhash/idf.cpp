#include "simhash/idf.hpp"

#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"

namespace simindex {

void IdfBuckets::find(std::span<const std::uint64_t> hashes, std::uint64_t* steps,
                      int level) const {
  for (const std::uint64_t hash : hashes) {
    __builtin_prefetch(values_ + kBucket * (hash >> shift_));
  }
#if SIMINDEX_X86
  if (level >= kAvx512) return find_avx512(hashes, steps);
#else
  (void)level;
#endif
  for (std::size_t i = 0; i < hashes.size(); ++i) steps[i] = find(hashes[i]);
}

#if SIMINDEX_X86

SIMINDEX_TARGET_AVX512 void IdfBuckets::find_avx512(std::span<const std::uint64_t> hashes,
                                                    std::uint64_t* steps) const {
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const __m512i bucket = _mm512_loadu_si512(values_ + kBucket * (hashes[i] >> shift_));
    const auto equal = static_cast<__mmask8>(
        _mm512_cmpeq_epi64_mask(bucket, _mm512_set1_epi64(static_cast<long long>(hashes[i]))) &
        0x0f);
    const auto step = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(
        _mm512_maskz_compress_epi64(static_cast<__mmask8>(equal << kPlaces), bucket))));
    steps[i] = step != 0 ? step : find(hashes[i]);  // not in this bucket, or not known
  }
}

#endif

void fill_idf_buckets(std::span<const std::uint64_t> hashes, std::span<const std::uint32_t> steps,
                      std::span<std::uint64_t> values) {
  const std::size_t mask = values.size() / kBucket - 1;
  const int shift = 64 - std::countr_zero(mask + 1);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (steps[i] == 0) continue;
    std::size_t number = hashes[i] >> shift;
    std::size_t place = 0;
    while (values[kBucket * number + kPlaces + place] != 0) {
      if (++place < kPlaces) continue;
      place = 0;
      number = (number + 1) & mask;
    }
    values[kBucket * number + place] = hashes[i];
    values[kBucket * number + kPlaces + place] = steps[i];
  }
}

}  // namespace simindex
