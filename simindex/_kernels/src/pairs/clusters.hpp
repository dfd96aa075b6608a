// Groups of near-duplicates, from pairs.
//
//   pairs          0-1  1-4  2-3        components   0 1 4 | 2 3
//
//   star           documents by rank, or those with most pairs with others first: one that is still
//                  free becomes a centre, and all near it are free no more; each joins the nearest
//                  centre, at last
//
//   document   x    y    z  |            fingerprint   f     g     h
//   rows      0 1   2    3  |            rows         0 2    1     3     edges f-g, g-h: within h
//
// Invariants
// 1. A forest's parents are never greater than their children, so every path ends at a root, which
//    is the smallest of its component whatever the order of pairs.
// 2. No two centres of a star clustering are near each other; every other document is near its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cpu/memory.hpp"

namespace simindex {

// Disjoint sets of the numbers below `size`, which is at most 2^32.
class Forest {
 public:
  explicit Forest(std::size_t size);

  // Joins a[i] with b[i]; false if one is not below the size, and then the rest is left out.
  bool unite(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);

  // The smallest number of each one's set.
  void labels(std::span<std::uint32_t> out);

  std::size_t size() const { return size_; }

 private:
  std::uint32_t root(std::uint32_t of);

  std::size_t size_;
  Memory<std::uint32_t> parent_;
};

constexpr std::uint32_t kNoDocument = ~std::uint32_t{0};

struct StarInput {
  std::span<const std::uint32_t> first;     // of each row, the row that stands for its fingerprint
  std::span<const std::uint32_t> document;  // of each row; kNoDocument for rows that do not count
  std::size_t documents;
  // Near fingerprints: the rows that stand for them, each pair once, and their distance.
  std::span<const std::uint32_t> a;
  std::span<const std::uint32_t> b;
  std::span<const std::uint16_t> distance;
  std::span<const std::uint64_t> rank;  // of each document, the least first; or empty
};

// Of each document the centre, itself if it is one, and the distance to it. Among the free ones the
// document of the least rank comes first; without ranks, the one with most pairs of one of its rows
// and a row of another document within h. Then the smaller. Nearest is by distance, then by document.
// False if a number is out of its range; out is then unspecified. Linear in rows and pairs; 80 bytes
// a row and 12 a pair.
// `poll` is called now and then; once it returns true, out is unspecified.
bool star(const StarInput& input, std::span<std::uint32_t> centre,
          std::span<std::uint16_t> apart, const std::function<bool()>& poll);

}  // namespace simindex
