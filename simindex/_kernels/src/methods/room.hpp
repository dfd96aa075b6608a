// How many matches a call may hold, over all its threads.
//
// Matches take room as their columns grow and give it back with their memory; what becomes numpy arrays
// stays taken, and whoever drops those gives it back.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace simindex {

// There are more matches than there is room for.
struct NoRoom : std::bad_alloc {
  const char* what() const noexcept override { return "no room for more matches"; }
};

class Room {
 public:
  explicit Room(std::int64_t matches) : left_(matches) {}

  // Takes as many of `wanted` as there is room for: one at least, or throws NoRoom.
  std::size_t take_some(std::size_t wanted) {
    std::int64_t left = left_.load(std::memory_order_relaxed);
    while (true) {
      if (left <= 0) throw NoRoom();
      const auto some = std::min(left, static_cast<std::int64_t>(wanted));
      if (left_.compare_exchange_weak(left, left - some, std::memory_order_relaxed))
        return static_cast<std::size_t>(some);
    }
  }

  // Takes all of them, or throws NoRoom and takes none.
  void take(std::size_t matches) {
    std::int64_t left = left_.load(std::memory_order_relaxed);
    const auto all = static_cast<std::int64_t>(matches);
    do {
      if (left < all) throw NoRoom();
    } while (!left_.compare_exchange_weak(left, left - all, std::memory_order_relaxed));
  }

  void give(std::size_t matches) {
    left_.fetch_add(static_cast<std::int64_t>(matches), std::memory_order_relaxed);
  }

  std::int64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> left_;
};

}  // namespace simindex
