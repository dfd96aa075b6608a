#include "arrange.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <vector>

#include "memory.hpp"

namespace simindex {
namespace {

struct Match {
  std::uint64_t id;
  std::int64_t query;
  std::uint64_t row : 48;
  std::uint64_t distance : 16;

  bool operator<(const Match& other) const {
    if (query != other.query) return query < other.query;
    if (distance != other.distance) return distance < other.distance;
    if (id != other.id) return id < other.id;
    return row < other.row;
  }
};
static_assert(sizeof(Match) == 24);

void insertion_sort(std::span<Match> matches) {
  for (std::size_t i = 1; i < matches.size(); ++i) {
    const Match match = matches[i];
    std::size_t to = i;
    for (; to > 0 && match < matches[to - 1]; --to) matches[to] = matches[to - 1];
    matches[to] = match;
  }
}

// Sorts matches of queries first .. first + width - 1.
class RangeSort {
 public:
  explicit RangeSort(std::size_t width) : width_(width) {}

  void operator()(std::span<Match> matches, std::int64_t first) {
    if (width_ > 8 * matches.size()) {
      std::sort(matches.begin(), matches.end());
      return;
    }
    ends_.assign(width_ + 1, 0);
    sorted_.resize(std::max(sorted_.size(), matches.size()));
    for (const Match& match : matches) ++ends_[static_cast<std::size_t>(match.query - first) + 1];
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    for (const Match& match : matches)
      sorted_[ends_[static_cast<std::size_t>(match.query - first)]++] = match;
    std::copy_n(sorted_.begin(), matches.size(), matches.begin());
    // Each query's start has moved to its end. Most have one match or few.
    constexpr std::size_t kFew = 16;
    std::size_t begin = 0;
    for (std::size_t query = 0; query < width_; ++query) {
      const std::span<Match> some = matches.subspan(begin, ends_[query] - begin);
      if (some.size() > kFew)
        std::sort(some.begin(), some.end());
      else if (some.size() > 1)
        insertion_sort(some);
      begin = ends_[query];
    }
  }

 private:
  std::size_t width_;
  std::vector<std::size_t> ends_;
  std::vector<Match> sorted_;
};

void distribute(const FoundColumns& found, std::size_t queries, const ArrangedColumns& arranged) {
  constexpr int kMostBits = 11;         // as many lines are written at a time
  constexpr std::size_t kInCache = 256;  // matches
  const std::size_t r = found.query.size();
  const int bits = std::min(kMostBits, static_cast<int>(std::bit_width(r / kInCache)));
  const int shift = std::max(0, static_cast<int>(std::bit_width(queries - 1)) - bits);
  std::vector<std::size_t> ends(((queries - 1) >> shift) + 2);
  for (const std::int64_t query : found.query) ++ends[(static_cast<std::size_t>(query) >> shift) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  const Memory<Match> matches = allocate<Match>(r);
  for (std::size_t i = 0; i < r; ++i) {
    const std::int64_t query = found.query[i];
    matches[ends[static_cast<std::size_t>(query) >> shift]++] = {found.ids[i], query, i,
                                                                 found.distance[i]};
  }
  RangeSort sort(std::size_t{1} << shift);
  std::size_t begin = 0;
  for (std::size_t range = 0; range + 1 < ends.size(); ++range) {
    const std::span<Match> some(matches.get() + begin, ends[range] - begin);
    if (some.size() > 1) sort(some, static_cast<std::int64_t>(range << shift));
    for (const Match& match : some) {
      arranged.query[begin] = match.query;
      arranged.ids[begin] = match.id;
      arranged.distance[begin] = match.distance;
      arranged.order[begin] = match.row;
      ++begin;
    }
  }
}

// Rows are looked at this many at a time.
constexpr std::size_t kLook = 256;

// Sorts within each query lists that are grouped by it.
void by_distance_and_id(const FoundColumns& found, std::span<std::int64_t> order) {
  const auto same_query = [&](std::size_t i) { return found.query[i - 1] == found.query[i]; };
  const std::size_t r = order.size();
  std::vector<Match> matches;
  std::array<std::uint8_t, kLook> wrong;
  for (std::size_t i = 1; i < r;) {
    // Where a query's rows end is not foreseen by the processor, so no branch depends on it: each
    // row only notes whether it stands wrong, behind a larger one of its query.
    const std::size_t look = std::min(kLook, r - i);
    std::uint8_t any = 0;
    for (std::size_t k = 0; k < look; ++k) {
      const std::size_t a = i + k - 1;
      const std::size_t b = i + k;
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
      for (std::size_t at = begin; at < end; ++at)
        matches.push_back({found.ids[at], 0, at, found.distance[at]});
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

bool arrange(const FoundColumns& found, std::size_t queries, const ArrangedColumns& arranged) {
  const std::span<const std::int64_t> query = found.query;
  bool grouped = true;
  bool within = true;
  for (std::size_t i = 0; i < query.size(); ++i) {
    within &= static_cast<std::uint64_t>(query[i]) < queries;
    grouped &= i == 0 || query[i - 1] <= query[i];
  }
  if (!within) return false;
  if (!grouped) {
    distribute(found, queries, arranged);
    return true;
  }
  std::iota(arranged.order.begin(), arranged.order.end(), 0);
  by_distance_and_id(found, arranged.order);
  for (std::size_t i = 0; i < query.size(); ++i) {
    const auto row = static_cast<std::size_t>(arranged.order[i]);
    arranged.query[i] = query[row];
    arranged.ids[i] = found.ids[row];
    arranged.distance[i] = found.distance[row];
  }
  return true;
}

}  // namespace simindex
