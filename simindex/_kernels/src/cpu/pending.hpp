// Cache lines that will be wanted soon, asked for one by one between other work.
//
// A core has a dozen or so line fill buffers. Prefetches issued in a row fill them and then stall the
// core for as long as memory needs; the same prefetches spread over arithmetic cost next to nothing
// (PSM, 10 M rows, 11 probes a query: see probe.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/levels.hpp"

namespace simindex {

class Pending {
 public:
  static constexpr std::size_t kCapacity = 2304;  // lines between two calls of clear
  static constexpr std::size_t kSlack = 16;       // what `tail` may be written past the last line

  void clear() { next_ = count_ = 0; }

  // Adds an address if `wanted`, without a branch.
  SIMINDEX_INLINE void add(std::uintptr_t line, bool wanted = true) {
    line_[count_] = line;
    count_ += wanted;
  }

  // Where the next addresses go, for writers of whole vectors; `advance` says how many were meant.
  SIMINDEX_INLINE std::uintptr_t* tail() { return line_ + count_; }
  SIMINDEX_INLINE void advance(std::size_t lines) { count_ += lines; }

  SIMINDEX_INLINE void one() {
    if (next_ != count_) __builtin_prefetch(reinterpret_cast<const void*>(line_[next_++]), 0, 2);
  }

  SIMINDEX_INLINE void all() {
    while (next_ != count_) one();
  }

 private:
  std::uintptr_t line_[kCapacity + kSlack];
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

}  // namespace simindex
