// Whether any row of some tables is within h of a query.
//
// That is all that a document asks which comes by itself and is near nothing. A search of the same tables
// from Python takes an array in and makes six columns for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "methods/probe/bphs.hpp"
#include "methods/probe/probe.hpp"

namespace simindex {

enum class Way { kScan, kProbe, kPermuted };

// A table and one exact way through it.
struct Passage {
  Way way = Way::kScan;
  Table table;
  std::span<const std::uint64_t> flips;  // kProbe: masks of the header, the empty one among them
  std::vector<PermutedTable> permuted;   // kPermuted: tables of a design, as `bphs` takes them
};

// `query` has the words of the tables. True, too, where permuted tables do not belong to their table 0, so
// that whoever searches for the row finds that out.
bool any_near(std::span<const Passage> passages, const std::uint64_t* query, std::uint64_t h,
              int level);

}  // namespace simindex
