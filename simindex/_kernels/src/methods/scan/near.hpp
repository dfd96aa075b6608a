// Which row is nearest to a document that comes by itself, of some tables and of the rows that wait.
//
// Most such documents are near nothing. A search of the same tables from Python takes an array in and makes
// six columns for each.
//
// A search that stops at the first row within h is repeated for nearer ones until there is none. So a
// million rows like the query cost no more than one, and of equally near rows that is found which each way
// comes to first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

struct NearRow {
  std::size_t passage = 0;  // number of the table
  std::uint32_t row = 0;
  std::uint64_t distance = 0;
};

struct Nearest {
  std::optional<NearRow> found;  // of the first table that has a row so near
  bool unsure = false;  // permuted tables do not belong to their table 0: a search tells which
};

// A row of least distance within h; `query` has the words of the tables.
Nearest nearest(std::span<const Passage> passages, const std::uint64_t* query, std::uint64_t h,
                int level);

}  // namespace simindex
