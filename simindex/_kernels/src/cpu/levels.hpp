// Which instruction sets this processor runs, and how a kernel picks one.
//
//   level 0  portable C++ (on arm64 the compiler's NEON)
//   level 1  AVX2 + POPCNT + BMI
//   level 2  AVX-512 F, BW, DQ and VL
//   level 3  these and VPOPCNTDQ, which counts bits
//
// A kernel with wider versions marks each with one of the target attributes below, includes nothing
// that would be compiled wide by accident, and chooses with `resolve_level(level)`.
#pragma once

#if defined(__x86_64__)
#define SIMINDEX_X86 1
#define SIMINDEX_TARGET_AVX2 __attribute__((target("avx2,popcnt,bmi,bmi2,lzcnt")))
#define SIMINDEX_TARGET_AVX512 \
  __attribute__((target("avx2,popcnt,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl")))
#define SIMINDEX_TARGET_AVX512_VPOPCNTDQ \
  __attribute__((target("avx2,popcnt,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")))
#else
#define SIMINDEX_X86 0
#endif

#define SIMINDEX_INLINE inline __attribute__((always_inline))

namespace simindex {

enum Level : int { kPortable = 0, kAvx2 = 1, kAvx512 = 2, kAvx512Vpopcntdq = 3 };

// The widest level this processor and its operating system run.
int widest_level();

// `requested` clamped to what runs here; -1 asks for the widest (or for what SIMINDEX_SIMD names,
// read once when the library is loaded).
int resolve_level(int requested);

}  // namespace simindex
