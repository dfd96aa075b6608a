#include "bits/records.hpp"

#include <cstring>

#include "bits/hamming.hpp"
#include "cpu/levels.hpp"

namespace simindex {
namespace {

SIMINDEX_INLINE std::uint64_t word(const std::uint8_t* record, std::size_t w) {
  std::uint64_t value;
  std::memcpy(&value, record + 8 * w, 8);
  return value;
}

void portable_distances(const Records& some, const std::int64_t* one, const Records& others,
                        const std::int64_t* other, std::size_t n, std::uint16_t* distance) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint8_t* const a = some.at(one[i]);
    const std::uint8_t* const b = others.at(other[i]);
    std::uint64_t bits = 0;
    for (std::size_t w = 0; w < some.words; ++w) {
      bits += portable::popcount(word(a, w) ^ word(b, w));
    }
    distance[i] = static_cast<std::uint16_t>(bits);
  }
}

#if SIMINDEX_X86
// Rows of the next pairs are asked for ahead: they lie at random places.
constexpr std::size_t kAhead = 8;

SIMINDEX_TARGET_AVX2 void wide_distances(const Records& some, const std::int64_t* one,
                                         const Records& others, const std::int64_t* other,
                                         std::size_t n, std::uint16_t* distance) {
  for (std::size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      __builtin_prefetch(some.at(one[i + kAhead]));
      __builtin_prefetch(others.at(other[i + kAhead]));
    }
    const std::uint8_t* const a = some.at(one[i]);
    const std::uint8_t* const b = others.at(other[i]);
    std::uint64_t bits = 0;
    for (std::size_t w = 0; w < some.words; ++w) {
      bits += static_cast<std::uint64_t>(__builtin_popcountll(word(a, w) ^ word(b, w)));
    }
    distance[i] = static_cast<std::uint16_t>(bits);
  }
}
#endif

}  // namespace

void record_distances(const Records& some, const std::int64_t* one, const Records& others,
                      const std::int64_t* other, std::size_t n, std::uint16_t* distance,
                      [[maybe_unused]] int level) {
#if SIMINDEX_X86
  if (level >= kAvx2) return wide_distances(some, one, others, other, n, distance);
#endif
  portable_distances(some, one, others, other, n, distance);
}

}  // namespace simindex
