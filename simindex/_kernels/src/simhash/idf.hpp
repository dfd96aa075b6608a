// The learned weight of features, for looking many of them up: a hash table in buckets of one cache
// line, four features each.
//
//   bucket  | hash 0 .. hash 3 | step 0 .. step 3 |    uint64 (2^k, 8), at most half full; a step of 0
//                                                      is a free place, and free places come last
//
// A hash belongs into the bucket of its top k bits (k is at least 1) and, when that is full, into the
// next one with room. A bucket is compared as a whole, without a branch on which place it is, because
// that cannot be predicted. Buckets are asked for ahead, a block of features at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

inline constexpr int kStepBits = 12;
inline constexpr std::uint64_t kOneStep = std::uint64_t{1} << kStepBits;

inline constexpr std::size_t kPlaces = 4;
inline constexpr std::size_t kBucket = 2 * kPlaces;

class IdfBuckets {
 public:
  IdfBuckets() = default;
  // `values` holds 8 * 2^k.
  IdfBuckets(std::span<const std::uint64_t> values, std::uint64_t unseen)
      : values_(values.data()),
        mask_(values.size() / kBucket - 1),
        shift_(64 - std::countr_zero(values.size() / kBucket)),
        unseen_(unseen) {}

  // Step of a hash; follows at most as many buckets as there are.
  std::uint64_t find(std::uint64_t hash) const {
    std::size_t number = hash >> shift_;
    for (std::size_t looks = 0; looks <= mask_; ++looks, number = (number + 1) & mask_) {
      const std::uint64_t* const bucket = values_ + kBucket * number;
      std::uint64_t step = 0;
      for (std::size_t place = 0; place < kPlaces; ++place) {
        const std::uint64_t other = bucket[place] ^ hash;  // 0 becomes all ones
        step |= bucket[kPlaces + place] & (((other | (0 - other)) >> 63) - 1);
      }
      if (step != 0 || bucket[kBucket - 1] == 0) [[likely]] return step != 0 ? step : unseen_;
    }
    return unseen_;
  }

  // Steps of many.
  void find(std::span<const std::uint64_t> hashes, std::uint64_t* steps, int level) const;

 private:
  void find_avx512(std::span<const std::uint64_t> hashes, std::uint64_t* steps) const;

  const std::uint64_t* values_ = nullptr;
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::uint64_t unseen_ = kOneStep;
};

// Buckets for n features: a power of two, with twice as many places or more.
inline std::size_t idf_buckets_of(std::size_t n) {
  return std::bit_ceil(n / 2 + 2);
}

// Fills `values` (zeros, 8 * idf_buckets_of(n)) from distinct hashes and their steps. A step of 0
// would be a free place: such a feature is left out.
void fill_idf_buckets(std::span<const std::uint64_t> hashes, std::span<const std::uint32_t> steps,
                      std::span<std::uint64_t> values);

}  // namespace simindex
