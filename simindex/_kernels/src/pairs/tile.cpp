#include "pairs/tile.hpp"

#include <algorithm>

#include "cpu/intrinsics.hpp"

namespace simindex {
namespace {

namespace portable_level {
using namespace portable;
#define SIMINDEX_LEVEL_TARGET
#include "pairs/tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
using namespace avx2;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "pairs/tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

#define SIMINDEX_PAIRS_LINES

namespace avx512_level {
using namespace avx512;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "pairs/tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level

namespace avx512_vpopcntdq_level {
using namespace avx512_vpopcntdq;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "pairs/tile.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_vpopcntdq_level

#undef SIMINDEX_PAIRS_LINES
#endif

}  // namespace

Comparing comparing(const Sieve& sieve, int level) {
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq) return avx512_vpopcntdq_level::comparing(sieve);
  if (level >= kAvx512) return avx512_level::comparing(sieve);
  if (level >= kAvx2) return avx2_level::comparing(sieve);
#endif
  (void)level;
  return portable_level::comparing(sieve);
}

}  // namespace simindex
