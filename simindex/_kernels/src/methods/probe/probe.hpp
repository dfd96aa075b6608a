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
// Probes flow through three stages, a block of about 16 queries at a time, so that all memory a block
// needs is on its way while other blocks are worked on. In turn i:
//
//     block i-1   read the directory, list the cache lines of the rows
//     block i     VOSH masks -> places in the directory; between its steps ask for those lines
//     block i-2   compare; between buckets ask for the rest, and for block i's directory entries
//
// What bounds it (Xeon with AVX-512 at 2.6 GHz, 10 M uniform rows in huge pages, D = t = 20, k = 10,
// h = 3, 200,000 queries, CPU time of one thread on a machine whose two cores were both busy): about
// 240 ns a query, of which VOSH takes 55. With a table that fits the second-level cache the same
// search takes 140 ns, so about 100 ns is what remains of 23 + 11 cache lines a query, 3 ns each.
// Asking for the lines of a whole block in a row instead took 390 ns: prefetches fill the line fill
// buffers, and loads that find their line in the second-level cache then wait for a free one. Pages
// of 4 KiB cost 10 to 20 % more (page walks). Prefetching into the second-level cache is as good as or
// better than into the first, which two blocks would overflow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bits/vosh.hpp"
#include "methods/matches.hpp"
#include "storage/verified.hpp"

namespace simindex {

inline constexpr std::size_t kMaxRows = (std::size_t{1} << 32) - 16;
inline constexpr std::size_t kMaxWords = 1023;  // a distance fits 16 bits
inline constexpr int kMaxDirectoryBits = 31;

struct Table {
  const std::uint64_t* rows = nullptr;  // (n, words), sorted by word 0
  std::size_t n = 0;                    // at most kMaxRows
  std::size_t words = 1;
  const std::uint32_t* directory = nullptr;  // (2^directory_bits + 1,)
  int directory_bits = 0;                    // 0 .. kMaxDirectoryBits
  int header_bits = 0;                       // 0 .. directory_bits
  Verified* verified = nullptr;              // what the rows are part of, if they are to be verified

  // Before rows lo .. hi-1 are read, and the one before them, which tells whether lo repeats it.
  void touch(std::size_t lo, std::size_t hi) const {
    if (verified == nullptr || verified->all() || lo >= hi) [[likely]]
      return;
    lo -= lo != 0;
    verified->touch(rows + lo * words, (hi - lo) * words);
  }
};

struct Search {
  const std::uint64_t* queries = nullptr;  // (m, words)
  std::size_t m = 0;
  std::uint64_t h = 0;
  bool first = false;  // at most one match per query: the first found, masks in their order
  Room* room = nullptr;  // of the matches, if there is a bound
  const Likely* likely = nullptr;  // which rows within h are taken, if not all; not in `first` mode
};

struct Counts {
  std::uint64_t probes = 0;    // buckets looked into
  std::uint64_t compared = 0;  // rows compared, up to the match in `first` mode
};

struct Found : Counts {
  Found() = default;
  explicit Found(const Search& search) : matches(search.room, search.likely) {}

  Matches matches;  // in query order
};

// `flips` is (k,) for all queries if `stride` is 0, else (m, stride) with k <= stride.
Found probe(const Table& table, const Search& search, const std::uint64_t* flips, std::size_t k,
            std::size_t stride, int level);

// The same for flips of all queries, given to another sink than Matches: FoundRows or Hits.
template <class Sink>
Counts probe_into(const Table& table, const Search& search, const std::uint64_t* flips,
                  std::size_t k, int level, Sink& out);

// The query's own bucket, then those of its plan.flips most likely flip sets; weights (m, plan.bits).
Found psm(const Table& table, const Search& search, const Vosh& plan, const float* weights,
          int level);

}  // namespace simindex
