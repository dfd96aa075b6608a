// The K nearest documents of every query, by comparing every row: exact at any width and K.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "methods/scan/top_k.hpp"

namespace simindex {

struct TopRows {
  const std::uint64_t* rows = nullptr;  // (n, words) row-major
  const std::uint64_t* ids = nullptr;   // (n,)
  const std::uint8_t* dead = nullptr;   // (n,), not 0: the row is left out; null if none is dead
  std::size_t n = 0;                    // below 2^32 - 1
  std::size_t words = 0;
};

// One TopK for each of the m queries (m, words). Rows are split over `threads`; the result does not
// depend on them. `poll` is called on the calling thread now and then; once it returns true the
// search ends and its result means nothing.
std::vector<TopK> top_scan(const TopRows& table, const std::uint64_t* queries, std::size_t m,
                           std::size_t k, std::size_t threads, int level,
                           const std::function<bool()>& poll);

}  // namespace simindex
