#include "bits/permutation.hpp"

#include <algorithm>
#include <bit>

#include "cpu/levels.hpp"

namespace simindex {
namespace {

namespace portable_level {
#define SIMINDEX_LEVEL_TARGET
#include "bits/permutation.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "bits/permutation.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "bits/permutation.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level
#endif

}  // namespace

void permute(const std::uint64_t* from, std::size_t n, std::size_t words,
             std::span<const Rotation> rotations, std::uint64_t* to, int level) {
  if (words == 1) {
#if SIMINDEX_X86
    if (level >= kAvx512Vpopcntdq) return avx512_level::permute_words(from, n, rotations, to);
    if (level >= kAvx2) return avx2_level::permute_words(from, n, rotations, to);
#else
    (void)level;
#endif
    return portable_level::permute_words(from, n, rotations, to);
  }
  std::fill_n(to, n * words, 0);
  for (std::size_t i = 0; i < n; ++i, from += words, to += words)
    for (const Rotation& rotation : rotations)
      to[rotation.target] |=
          std::rotl(from[rotation.source], static_cast<int>(rotation.left)) & rotation.mask;
}

}  // namespace simindex
