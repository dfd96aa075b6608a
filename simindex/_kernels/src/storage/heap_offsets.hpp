// A heap of byte strings: `data` holds them one after another, `offsets[i] .. offsets[i + 1]` is
// string i, so n strings have n + 1 offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// Whether the offsets (at least one) start at or after 0, never fall, and end within `data_bytes`.
inline bool offsets_hold(std::span<const std::int64_t> offsets, std::size_t data_bytes) {
  if (offsets.empty() || offsets.front() < 0) return false;
  bool rising = true;  // no early exit: the loop stays free of branches
  for (std::size_t i = 1; i < offsets.size(); ++i) rising &= offsets[i - 1] <= offsets[i];
  return rising && static_cast<std::uint64_t>(offsets.back()) <= data_bytes;
}

}  // namespace simindex
