// The x86 intrinsics, where there are any. GCC 12's header marks "any value" operands in a way that
// its own -Wuninitialized then reports; only that header is excused.
#pragma once

#include <cstdint>

#include "cpu/levels.hpp"

#if SIMINDEX_X86
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace simindex {

// A mask as a number. The move is written out, for GCC 12 may keep a mask as fewer bytes of the stack
// than it reads back: with -O2 -fsanitize=undefined a sweep found rows that are not near.
SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE std::uint32_t bits_of(__mmask8 mask) {
  std::uint32_t bits;
  asm("kmovb %1, %0" : "=r"(bits) : "k"(mask));
  return bits;
}

SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE std::uint32_t bits_of(__mmask16 mask) {
  std::uint32_t bits;
  asm("kmovw %1, %0" : "=r"(bits) : "k"(mask));
  return bits;
}

}  // namespace simindex
#endif
