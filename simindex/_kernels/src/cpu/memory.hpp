// Memory for whole arrays: not initialised, and on large pages where the system grants them, since
// a sort or gather touches a page per row and would otherwise spend its time on address translation.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace simindex {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

template <typename T>
using Memory = std::unique_ptr<T[], FreeMemory>;

// Memory for `size` values; std::bad_alloc if there is none.
template <typename T>
Memory<T> allocate(std::size_t size) {
  static_assert(std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>);
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  if (size > (std::numeric_limits<std::size_t>::max() - kLargePage) / sizeof(T)) {
    throw std::bad_alloc();
  }
  const std::size_t bytes = size * sizeof(T);
  void* memory = nullptr;
  if (bytes < 2 * kLargePage) {
    memory = std::malloc(bytes > 0 ? bytes : 1);
  } else {
    // Only whole large pages are asked for, so nothing is held beyond the array's end.
    memory = std::aligned_alloc(kLargePage, (bytes + kLargePage - 1) / kLargePage * kLargePage);
#if defined(__linux__)
    if (memory != nullptr) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  }
  if (memory == nullptr) throw std::bad_alloc();
  return Memory<T>(static_cast<T*>(memory));
}

}  // namespace simindex
