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

// So many bytes; std::bad_alloc if there are none.
inline void* allocate_bytes(std::size_t bytes) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  if (bytes > std::numeric_limits<std::size_t>::max() - kLargePage) throw std::bad_alloc();
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
  return memory;
}

// Memory for `size` values; std::bad_alloc if there is none.
template <typename T>
Memory<T> allocate(std::size_t size) {
  static_assert(std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>);
  if (size > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
  return Memory<T>(static_cast<T*>(allocate_bytes(size * sizeof(T))));
}

// The same for a vector.
template <typename T>
struct LargePages {
  using value_type = T;

  LargePages() = default;
  template <typename U>
  LargePages(const LargePages<U>&) {}

  T* allocate(std::size_t size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(allocate_bytes(size * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  bool operator==(const LargePages&) const { return true; }
};

}  // namespace simindex
