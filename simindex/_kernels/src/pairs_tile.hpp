// Compares words with one another, some thousand at a time, so that all of them stay in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compare.hpp"

namespace simindex {

// Two places among the words of a group, first < second.
struct Candidate {
  std::uint32_t first;
  std::uint32_t second;
};

class Candidates {
 public:
  void clear() { found_.clear(); }
  auto begin() const { return found_.begin(); }
  auto end() const { return found_.end(); }
  bool empty() const { return found_.empty(); }

  // As a sink of `compare`.
  void take(std::int64_t first, std::uint32_t second, std::uint64_t, std::uint64_t) {
    found_.push_back({static_cast<std::uint32_t>(first), second});
  }

 private:
  std::vector<Candidate> found_;
};

// Some places of a group; with all places of it from `first` on or after their own, whichever is later.
struct Tile {
  std::uint32_t rows_begin;
  std::uint32_t rows_end;
  std::uint32_t first;
  std::uint32_t last;  // not included
};

// Adds the pairs (i, j) of places with rows_begin <= i < rows_end, first <= j < last and i < j whose words
// are within h. `sieve` as in compare.hpp.
using TileCompare = void (*)(const std::uint64_t* words, const Tile& tile, std::uint64_t h,
                             const Sieve& sieve, Candidates& out);

TileCompare tile_compare(const Sieve& sieve, int level);

}  // namespace simindex
