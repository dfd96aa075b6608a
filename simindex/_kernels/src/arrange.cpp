#include "arrange.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>
#include <vector>

#include "sort.hpp"

namespace simindex {
namespace {

struct Match {
  std::uint64_t id;
  std::int64_t row;
  std::uint16_t distance;

  bool operator<(const Match& other) const {
    return std::tie(distance, id, row) < std::tie(other.distance, other.id, other.row);
  }
};

// Rows by query, keeping their order. `queries` bounds every query.
void by_query(std::span<const std::int64_t> query, std::size_t queries,
              std::span<std::int64_t> order) {
  if (queries / 4 > query.size()) {
    // Few matches of many queries: counts would cost more than the matches.
    const std::unique_ptr<std::uint64_t[]> keys(new std::uint64_t[query.size()]);
    sort_pairs({reinterpret_cast<const std::uint64_t*>(query.data()), nullptr, query.size()},
               keys.get(), reinterpret_cast<std::uint64_t*>(order.data()));
    return;
  }
  std::vector<std::int64_t> starts(queries + 1);
  for (const std::int64_t q : query) ++starts[static_cast<std::size_t>(q) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  for (std::size_t i = 0; i < query.size(); ++i) {
    order[static_cast<std::size_t>(starts[static_cast<std::size_t>(query[i])]++)] =
        static_cast<std::int64_t>(i);
  }
}

bool in_order(const Found& found, std::span<const std::int64_t> group) {
  for (std::size_t i = 1; i < group.size(); ++i) {
    const auto a = static_cast<std::size_t>(group[i - 1]);
    const auto b = static_cast<std::size_t>(group[i]);
    if (found.distance[a] > found.distance[b] ||
        (found.distance[a] == found.distance[b] && found.ids[a] > found.ids[b])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool arrange(const Found& found, std::size_t queries, std::span<std::int64_t> order) {
  const std::span<const std::int64_t> query = found.query;
  bool grouped = true;
  bool within = true;
  for (std::size_t i = 0; i < query.size(); ++i) {
    within &= static_cast<std::uint64_t>(query[i]) < queries;
    grouped &= i == 0 || query[i - 1] <= query[i];
  }
  if (!within) return false;
  if (grouped) {
    std::iota(order.begin(), order.end(), 0);
  } else {
    by_query(query, queries, order);
  }
  std::vector<Match> matches;
  for (std::size_t begin = 0; begin < order.size();) {
    const std::int64_t q = query[static_cast<std::size_t>(order[begin])];
    std::size_t end = begin + 1;
    while (end < order.size() && query[static_cast<std::size_t>(order[end])] == q) ++end;
    const std::span<std::int64_t> group = order.subspan(begin, end - begin);
    begin = end;
    if (in_order(found, group)) continue;
    matches.clear();
    for (const std::int64_t row : group) {
      const auto at = static_cast<std::size_t>(row);
      matches.push_back({found.ids[at], row, found.distance[at]});
    }
    std::sort(matches.begin(), matches.end());
    for (std::size_t i = 0; i < group.size(); ++i) group[i] = matches[i].row;
  }
  return true;
}

}  // namespace simindex
