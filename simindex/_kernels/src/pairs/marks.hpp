// Which rows of a table are marked: a bit for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pairs/pairs.hpp"

namespace simindex {

inline bool is_marked(std::span<const std::uint64_t> marks, std::size_t row) {
  return (marks[row / 64] >> row % 64 & 1) != 0;
}

// A bit for each of n rows: whether it is the given one of equal rows.
inline std::vector<std::uint64_t> marked(const std::vector<Equal>& equal, std::size_t n,
                                  std::uint32_t Equal::*which) {
  std::vector<std::uint64_t> marks(n / 64 + 1);
  for (const Equal& one : equal) marks[one.*which / 64] |= std::uint64_t{1} << one.*which % 64;
  return marks;
}

}  // namespace simindex
