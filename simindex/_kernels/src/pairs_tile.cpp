#include "pairs_tile.hpp"

#include <algorithm>

namespace simindex {
namespace {

namespace portable_level {
using portable::compare;
using portable::kSieves;
#define SIMINDEX_LEVEL_TARGET
#include "pairs_tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
using avx2::compare;
using avx2::kSieves;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "pairs_tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
using avx512::compare;
using avx512::kSieves;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "pairs_tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level

namespace avx512_vpopcntdq_level {
using avx512_vpopcntdq::compare;
using avx512_vpopcntdq::kSieves;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "pairs_tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_vpopcntdq_level
#endif

}  // namespace

TileCompare tile_compare(const Sieve& sieve, int level) {
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq) return avx512_vpopcntdq_level::tile_compare(sieve);
  if (level >= kAvx512) return avx512_level::tile_compare(sieve);
  if (level >= kAvx2) return avx2_level::tile_compare(sieve);
#endif
  (void)level;
  return portable_level::tile_compare(sieve);
}

}  // namespace simindex
