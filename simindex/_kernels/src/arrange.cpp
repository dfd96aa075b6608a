#include "arrange.hpp"

#include <algorithm>
#include <array>
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

// Rows are looked at this many at a time.
constexpr std::size_t kLook = 256;

// Sorts within each query. `row(i)` is the row that stands at place i of `order` before.
template <typename RowAt>
void by_distance_and_id(const Found& found, const RowAt& row, std::span<std::int64_t> order) {
  const auto same_query = [&](std::size_t i) {
    return found.query[row(i - 1)] == found.query[row(i)];
  };
  const std::size_t r = order.size();
  std::vector<Match> matches;
  std::array<std::uint8_t, kLook> wrong;
  for (std::size_t i = 1; i < r;) {
    // Where a query's rows end is not foreseen by the processor, so no branch depends on it: each
    // row only notes whether it stands wrong, behind a larger one of its query.
    const std::size_t look = std::min(kLook, r - i);
    std::uint8_t any = 0;
    for (std::size_t k = 0; k < look; ++k) {
      const std::size_t a = row(i + k - 1);
      const std::size_t b = row(i + k);
      const int later = found.ids[b] < found.ids[a];  // borrowed from the distance
      const int step = int{found.distance[b]} - int{found.distance[a]} - later;
      wrong[k] = static_cast<std::uint8_t>(static_cast<unsigned>(step) >> 31);
      wrong[k] &= static_cast<std::uint8_t>(found.query[a] == found.query[b]);
      any |= wrong[k];
    }
    std::size_t next = i + look;
    for (std::size_t k = 0; any != 0 && k < look; ++k) {
      if (wrong[k] == 0) continue;
      std::size_t begin = i + k - 1;
      std::size_t end = i + k + 1;
      while (begin > 0 && same_query(begin)) --begin;
      while (end < r && same_query(end)) ++end;
      matches.clear();
      for (std::size_t at = begin; at < end; ++at) {
        matches.push_back({found.ids[row(at)], static_cast<std::int64_t>(row(at)),
                           found.distance[row(at)]});
      }
      std::sort(matches.begin(), matches.end());
      for (const Match& match : matches) order[begin++] = match.row;
      // The first row of the next query stands behind none of its own.
      k = end - i;
      next = std::max(next, end + 1);
    }
    i = next;
  }
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
    by_distance_and_id(found, [](std::size_t i) { return i; }, order);
  } else {
    by_query(query, queries, order);
    const auto row = [&](std::size_t i) { return static_cast<std::size_t>(order[i]); };
    by_distance_and_id(found, row, order);
  }
  return true;
}

}  // namespace simindex
