// The order in which matches are given to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// What was found, a column each, all of one size.
struct FoundColumns {
  std::span<const std::int64_t> query;
  std::span<const std::uint64_t> ids;
  std::span<const std::uint16_t> distance;
};

// The same in order, and where each stood before, unless that is empty; sized by the caller.
struct ArrangedColumns {
  std::span<std::int64_t> query;
  std::span<std::uint64_t> ids;
  std::span<std::uint16_t> distance;
  std::span<std::int64_t> order;
};

struct Arrangement {
  bool within = false;    // every query is in 0 .. queries - 1; else nothing was written
  bool repeated = false;  // an id stands twice beside the same query and distance
};

// Sorts what was found by (query, distance, id), equal ones in the order they had.
//
// Lists grouped by ascending query, as one segment's probe gives them, cost a pass and a small sort
// per query. Others are first distributed into at most 2048 ranges of queries, each of which is
// then sorted within the caches (500,000 matches of 1 M queries in the order of a table: 25 ns a match
// where counting all queries took 115, most of it waiting for memory).
//
// Many matches are sorted by several threads; the result does not depend on their number.
Arrangement arrange(const FoundColumns& found, std::size_t queries,
                    const ArrangedColumns& arranged, std::size_t threads);

}  // namespace simindex
