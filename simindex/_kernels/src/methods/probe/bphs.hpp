// Block-permuted Hamming search: every table of a design, then the rows found again in table 0.
//
//     queries -> permuted as a table is -> probe or sweep of its buckets -> rows of that table
//     row of table j -> the first of its equals? found by no earlier table? -> un-permuted: a hit
//     hits -> looked up in table 0 (probe at distance 0) -> rows of table 0
//
// Every offset is bounded as in probe.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bits/permutation.hpp"
#include "methods/probe/probe.hpp"

namespace simindex {

// A table of a design, sorted by all its words, so that equal rows are neighbours. Table 0 has no
// rotations, and its rows need not be in that order.
struct PermutedTable {
  Table table;
  std::span<const Rotation> rotations;
  std::span<const Rotation> inverse;
  std::span<const std::uint64_t> flips;   // masks of the header, the empty one among them
  std::span<const std::uint64_t> header;  // (words,) what is looked up, not permuted
  std::uint64_t most_flips = 0;           // a row whose header differs in as many bits is found
};

struct FoundAgain {
  Found found;              // rows of table 0, by table, then as it was searched; its counts are of
                            // the search alone, not of finding hits again
  std::size_t missing = 0;  // hits that table 0 does not hold: the tables do not belong together
};

// Each pair of a query and a row of table 0 once, by the first of `tables` whose header differs in at
// most its flips; in `first` mode one row a query, of the first table that has any. A table is swept
// if at least `sweep_queries` are looked up, which is not 0, 64-bit rows are searched and not in
// `first` mode.
FoundAgain bphs(const Table& own, std::span<const PermutedTable> tables, const Search& search,
                std::size_t sweep_queries, int level);

}  // namespace simindex
