#include "cpu/levels.hpp"

#include <cstdlib>
#include <string_view>

namespace simindex {
namespace {

int detect() {
#if SIMINDEX_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("bmi2")) {
    return __builtin_cpu_supports("avx512vpopcntdq") ? kAvx512Vpopcntdq : kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") &&
      __builtin_cpu_supports("bmi2")) {
    return kAvx2;
  }
#endif
  return kPortable;
}

int from_environment(int widest) {
  const char* name = std::getenv("SIMINDEX_SIMD");
  if (name == nullptr) return widest;
  const std::string_view wanted(name);
  if (wanted == "portable") return kPortable;
  if (wanted == "avx2" && widest >= kAvx2) return kAvx2;
  if (wanted == "avx512" && widest >= kAvx512) return kAvx512;
  return widest;
}

const int kWidest = detect();
const int kDefault = from_environment(kWidest);

}  // namespace

int widest_level() { return kWidest; }

int resolve_level(int requested) {
  if (requested < 0) return kDefault;
  return requested < kWidest ? requested : kWidest;
}

}  // namespace simindex
