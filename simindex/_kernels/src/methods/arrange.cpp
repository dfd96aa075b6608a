#include "methods/arrange.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "cpu/memory.hpp"
#include "cpu/workers.hpp"
#include "storage/sort.hpp"

namespace simindex {
namespace {

// A match of a range of queries: its query there, its distance and its row in one word, row lowest.
struct Match {
  std::uint64_t key;
  std::uint64_t id;
};

constexpr int kDistanceBits = 16;

struct Layout {
  int row_bits;

  std::uint64_t key(std::uint64_t query, std::uint16_t distance, std::size_t row) const {
    return (query << kDistanceBits | distance) << row_bits | row;
  }
  std::size_t query(const Match& match) const { return match.key >> row_bits >> kDistanceBits; }
  std::uint16_t distance(const Match& match) const {
    return static_cast<std::uint16_t>(match.key >> row_bits);
  }
  std::size_t row(const Match& match) const {
    return match.key & ((std::uint64_t{1} << row_bits) - 1);
  }

  // Whether a stands before b: by query, distance, id and row.
  bool operator()(const Match& a, const Match& b) const {
    const std::uint64_t before = a.key >> row_bits;
    const std::uint64_t after = b.key >> row_bits;
    if (before != after) return before < after;
    return a.id != b.id ? a.id < b.id : a.key < b.key;
  }
};

// Sorts matches of `width` queries.
class RangeSort {
 public:
  RangeSort(std::size_t width, Layout layout) : width_(width), layout_(layout) {}

  // The matches in order, in their own place or in memory that lasts until the next call.
  std::span<Match> operator()(std::span<Match> matches) {
    const auto query_of = [&](const Match& match) { return layout_.query(match); };
    if (width_ > 8 * matches.size()) {
      std::sort(matches.begin(), matches.end(), layout_);
      return matches;
    }
    sorted_.resize(std::max(sorted_.size(), matches.size()));
    std::span<Match> other(sorted_.data(), matches.size());
    if (matches.size() > kDense && by_ids(matches, other)) {
      by_distance(matches, other);
      group(matches, other, width_, query_of, ends_);
      return matches;
    }
    group(matches, other, width_, query_of, ends_);
    // Most queries have one match or few.
    std::size_t begin = 0;
    for (std::size_t query = 0; query < width_; ++query) {
      const std::span<Match> some = matches.subspan(begin, ends_[query] - begin);
      if (some.size() > kFew)
        of_one_query(some, other.first(some.size()));
      else if (some.size() > 1)
        insertion_sort(some);
      begin = ends_[query];
    }
    return matches;
  }

 private:
  static constexpr std::size_t kFew = 16;
  static constexpr std::size_t kMany = 256;
  static constexpr std::size_t kDense = 1024;

  // Sorts by the digits in which ids differ; false, and nothing is done, if those are many.
  bool by_ids(std::span<Match>& matches, std::span<Match>& other) {
    constexpr int kDigit = 11;
    constexpr int kMostDigits = 3;
    std::uint64_t differing = 0;
    for (const Match& match : matches) differing |= match.id ^ matches[0].id;
    const int bits = std::bit_width(differing);
    if (bits > kDigit * kMostDigits) return false;
    for (int shift = 0; shift < bits; shift += kDigit)
      group(matches, other, std::size_t{1} << kDigit,
            [&](const Match& match) { return match.id >> shift & ((1 << kDigit) - 1); }, digits_);
    return true;
  }

  void by_distance(std::span<Match>& matches, std::span<Match>& other) {
    std::size_t farthest = 0;
    for (const Match& match : matches)
      farthest = std::max<std::size_t>(farthest, layout_.distance(match));
    group(matches, other, farthest + 1,
          [&](const Match& match) { return layout_.distance(match); }, digits_);
  }

  // By distance, and then by id: of a template thousands match.
  void of_one_query(std::span<Match> matches, std::span<Match> other) {
    const std::span<Match> own = matches;
    by_distance(matches, other);
    std::copy(matches.begin(), matches.end(), own.begin());
    std::size_t begin = 0;
    for (std::size_t distance = 0; distance + 1 < digits_.size(); ++distance) {
      const std::span<Match> some = own.subspan(begin, digits_[distance] - begin);
      if (some.size() > kMany)
        by_id(some);
      else
        std::sort(some.begin(), some.end(), layout_);
      begin = digits_[distance];
    }
  }

  void by_id(std::span<Match> matches) {
    const std::size_t size = matches.size();
    ids_.resize(std::max(ids_.size(), 4 * size));
    std::uint64_t* ids = ids_.data();
    for (std::size_t i = 0; i < size; ++i) {
      ids[i] = matches[i].id;
      ids[size + i] = matches[i].key;
    }
    sort_pairs({ids, ids + size, size}, ids + 2 * size, ids + 3 * size);
    for (std::size_t i = 0; i < size; ++i) matches[i] = {ids[3 * size + i], ids[2 * size + i]};
  }

  void insertion_sort(std::span<Match> matches) const {
    for (std::size_t i = 1; i < matches.size(); ++i) {
      const Match match = matches[i];
      std::size_t to = i;
      for (; to > 0 && layout_(match, matches[to - 1]); --to) matches[to] = matches[to - 1];
      matches[to] = match;
    }
  }

  // Puts matches in the order of a number below `width`, equal ones in the order they had, into
  // `other`, which then is `matches`; the end of each number's stands in `ends`.
  template <class NumberOf>
  static void group(std::span<Match>& matches, std::span<Match>& other, std::size_t width,
                    const NumberOf& number_of, std::vector<std::size_t>& ends) {
    ends.assign(width + 1, 0);
    for (const Match& match : matches) ++ends[number_of(match) + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    for (const Match& match : matches) other[ends[number_of(match)]++] = match;
    std::swap(matches, other);
  }

  std::size_t width_;
  Layout layout_;
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> digits_;
  std::vector<Match> sorted_;
  std::vector<std::uint64_t> ids_;
};

void gather(const FoundColumns& found, std::span<const std::int64_t> order,
            const ArrangedColumns& arranged) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto row = static_cast<std::size_t>(order[i]);
    arranged.query[i] = found.query[row];
    arranged.ids[i] = found.ids[row];
    arranged.distance[i] = found.distance[row];
  }
}

// Where a match does not fit a word: more than 2^48 queries times matches in a range.
void sort_plainly(const FoundColumns& found, std::span<std::int64_t> order) {
  const auto at = [&](std::int64_t row) {
    const auto i = static_cast<std::size_t>(row);
    return std::tuple(found.query[i], found.distance[i], found.ids[i], row);
  };
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return at(a) < at(b); });
}

// Calls work(part, begin, end) for equal parts of 0 .. r-1, one for each thread.
template <class Work>
void in_parts(std::size_t r, std::size_t threads, const Work& work) {
  const std::size_t share = (r + threads - 1) / threads;
  split(
      threads, threads, [] { return 0; },
      [&](int, std::size_t part, const auto&) {
        work(part, std::min(r, part * share), std::min(r, (part + 1) * share));
      },
      [](int) {}, [] { return false; });
}

// False, and nothing is done, where a match does not fit a word.
bool distribute(const FoundColumns& found, std::size_t queries, const ArrangedColumns& arranged,
                std::size_t threads) {
  constexpr int kMostBits = 11;          // as many lines are written at a time
  constexpr std::size_t kInCache = 256;  // matches
  const std::size_t r = found.query.size();
  const int bits = std::min(kMostBits, static_cast<int>(std::bit_width(r / kInCache)));
  const int shift = std::max(0, static_cast<int>(std::bit_width(queries - 1)) - bits);
  const Layout layout{static_cast<int>(std::bit_width(r))};
  if (shift + kDistanceBits + layout.row_bits > 64) return false;
  const std::uint64_t in_range = (std::uint64_t{1} << shift) - 1;
  const std::size_t ranges = ((queries - 1) >> shift) + 1;

  // Where each part of the matches begins in each range; then, where it ends.
  std::vector<std::vector<std::size_t>> ends(threads, std::vector<std::size_t>(ranges));
  in_parts(r, threads, [&](std::size_t part, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      ++ends[part][static_cast<std::size_t>(found.query[i]) >> shift];
  });
  std::vector<std::size_t> starts(ranges + 1);
  for (std::size_t range = 0; range < ranges; ++range) {
    std::size_t at = starts[range];
    for (std::vector<std::size_t>& of_part : ends) at += std::exchange(of_part[range], at);
    starts[range + 1] = at;
  }
  const Memory<Match> matches = allocate<Match>(r);
  in_parts(r, threads, [&](std::size_t part, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto query = static_cast<std::uint64_t>(found.query[i]);
      matches[ends[part][query >> shift]++] = {
          layout.key(query & in_range, found.distance[i], i), found.ids[i]};
    }
  });

  split(
      ranges, threads, [&] { return RangeSort(std::size_t{1} << shift, layout); },
      [&](RangeSort& sort, std::size_t range, const auto&) {
        std::size_t at = starts[range];
        std::span<Match> some(matches.get() + at, starts[range + 1] - at);
        if (some.size() > 1) some = sort(some);
        for (const Match& match : some) {
          arranged.query[at] = static_cast<std::int64_t>(range << shift | layout.query(match));
          arranged.ids[at] = match.id;
          arranged.distance[at] = layout.distance(match);
          if (!arranged.order.empty())
            arranged.order[at] = static_cast<std::int64_t>(layout.row(match));
          ++at;
        }
      },
      [](RangeSort&) {}, [] { return false; });
  return true;
}

// Rows are looked at this many at a time.
constexpr std::size_t kLook = 256;

// Sorts within each query lists that are grouped by it.
void by_distance_and_id(const FoundColumns& found, std::span<std::int64_t> order) {
  const auto same_query = [&](std::size_t i) { return found.query[i - 1] == found.query[i]; };
  const std::size_t r = order.size();
  const Layout layout{static_cast<int>(std::bit_width(r))};
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
        matches.push_back({layout.key(0, found.distance[at], at), found.ids[at]});
      std::sort(matches.begin(), matches.end(), layout);
      for (const Match& match : matches)
        order[begin++] = static_cast<std::int64_t>(layout.row(match));
      // The first row of the next query stands behind none of its own.
      k = end - i;
      next = std::max(next, end + 1);
    }
    i = next;
  }
}

}  // namespace

Arrangement arrange(const FoundColumns& found, std::size_t queries,
                    const ArrangedColumns& arranged, std::size_t threads) {
  constexpr std::size_t kWorthThreads = 1 << 14;
  const std::span<const std::int64_t> query = found.query;
  const std::size_t r = query.size();
  bool grouped = true;
  bool within = true;
  for (std::size_t i = 0; i < r; ++i) {
    within &= static_cast<std::uint64_t>(query[i]) < queries;
    grouped &= i == 0 || query[i - 1] <= query[i];
  }
  if (!within) return {};
  if (r < kWorthThreads) threads = 1;
  if (grouped || !distribute(found, queries, arranged, threads)) {
    Memory<std::int64_t> own;
    std::span<std::int64_t> order = arranged.order;
    if (order.empty()) {
      own = allocate<std::int64_t>(r);
      order = {own.get(), r};
    }
    if (grouped) {
      std::iota(order.begin(), order.end(), 0);
      by_distance_and_id(found, order);
    } else {
      sort_plainly(found, order);
    }
    gather(found, order, arranged);
  }
  bool repeated = false;
  for (std::size_t i = 1; i < r; ++i) {
    const auto differ = (arranged.ids[i - 1] ^ arranged.ids[i]) |
                        static_cast<std::uint64_t>(arranged.query[i - 1] ^ arranged.query[i]) |
                        static_cast<std::uint64_t>(arranged.distance[i - 1] ^ arranged.distance[i]);
    repeated |= differ == 0;
  }
  return {true, repeated};
}

}  // namespace simindex
