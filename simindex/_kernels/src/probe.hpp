// Looks queries up in a sorted table through its header directory: probe and PSM, [PSM] section 5.
//
//     word 0 of x:  |<- t header bits ->|<----------- tail ----------->|
//     directory:     2^D + 1 row offsets, D >= t; the bucket of header v is rows
//                    directory[v << (D-t)] .. directory[(v+1) << (D-t)] - 1
//
// For each query x and each flip mask f (bits of the header, 0 for x itself) the rows of the bucket of
// x ^ f are compared in full. Every offset is clamped to 0 .. n and an upper end below its lower end
// counts as empty, so a damaged directory costs recall and nothing else.
//
// Probes flow through three stages, a block at a time, so that all memory a block needs is on its
// way while other blocks are worked on:
//
//     block i     masks -> headers, prefetch the directory entries
//     block i-1   read the directory, prefetch the rows' cache lines
//     block i-2   compare
#pragma once

#include <cstddef>
#include <cstdint>

#include "matches.hpp"
#include "vosh.hpp"

namespace simindex {

struct Table {
  const std::uint64_t* rows = nullptr;  // (n, words), sorted by word 0
  std::size_t n = 0;                    // < 2^32
  std::size_t words = 1;
  const std::uint32_t* directory = nullptr;  // (2^directory_bits + 1,)
  int directory_bits = 0;                    // 0 .. 32
  int header_bits = 0;                       // 0 .. directory_bits
};

struct Search {
  const std::uint64_t* queries = nullptr;  // (m, words)
  std::size_t m = 0;
  std::uint64_t h = 0;
  bool first = false;  // at most one match per query: the first found, masks in their order
};

struct Found {
  Matches matches;            // in query order
  std::uint64_t probes = 0;   // buckets looked into
  std::uint64_t compared = 0;  // rows compared, up to the match in `first` mode
};

// `flips` is (k,) for all queries if `stride` is 0, else (m, stride) with k <= stride.
Found probe(const Table& table, const Search& search, const std::uint64_t* flips, std::size_t k,
            std::size_t stride, int level);

// The query's own bucket, then those of its plan.flips most likely flip sets; weights (m, plan.bits).
Found psm(const Table& table, const Search& search, const Vosh& plan, const float* weights,
          int level);

}  // namespace simindex
