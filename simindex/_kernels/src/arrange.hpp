// The order in which matches are given to the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// What was found, a column each, all of one size.
struct Found {
  std::span<const std::int64_t> query;
  std::span<const std::uint64_t> ids;
  std::span<const std::uint16_t> distance;
};

// Writes the permutation that sorts what was found by (query, distance, id), equal ones in the order
// they had. False if a query is not in 0 .. queries - 1; `order` is then unspecified.
//
// Lists grouped by ascending query, as one segment's probe gives them, cost a pass and a small sort
// per query. Several such lists one after another are first distributed by counting.
bool arrange(const Found& found, std::size_t queries, std::span<std::int64_t> order);

}  // namespace simindex
