// What equal rows add to pairs of distinct ones.
#include <algorithm>
#include <span>
#include <vector>

#include "pairs/marks.hpp"
#include "pairs/pairs.hpp"
#include "storage/sort.hpp"

namespace simindex {
namespace {

// Rows by the first of those equal to them.
class Repeats {
 public:
  Repeats(const std::vector<Equal>& equal, std::size_t n)
      : first(equal.size()), row(equal.size()), marks_(marked(equal, n, &Equal::first)) {
    std::vector<std::uint64_t> from(equal.size());
    std::vector<std::uint64_t> to(equal.size());
    for (std::size_t i = 0; i < equal.size(); ++i) {
      from[i] = equal[i].first;
      to[i] = equal[i].row;
    }
    sort_pairs({from.data(), to.data(), equal.size()}, first.data(), row.data());
    for (std::size_t i = 0; i < first.size(); ++i)
      if (i == 0 || first[i - 1] != first[i]) starts_.push_back(i);
    starts_.push_back(first.size());
  }

  std::span<const std::uint64_t> of(std::uint32_t one) const {
    if (!is_marked(marks_, one)) return {};
    const auto start = std::partition_point(starts_.begin(), starts_.end() - 1,
                                            [&](std::size_t at) { return first[at] < one; });
    return std::span(row).subspan(start[0], start[1] - start[0]);
  }

  // Calls group(first, rows) for each of several equal rows.
  template <class Group>
  void each(Group group) const {
    for (std::size_t i = 0; i + 1 < starts_.size(); ++i)
      group(first[starts_[i]], std::span(row).subspan(starts_[i], starts_[i + 1] - starts_[i]));
  }

  std::vector<std::uint64_t> first;  // ascending
  std::vector<std::uint64_t> row;    // ascending where `first` is equal

 private:
  std::vector<std::uint64_t> marks_;
  std::vector<std::size_t> starts_;
};

double pairs_of_rows(const DistinctPairs& found, std::size_t n, bool with_equal) {
  auto pairs = static_cast<double>(found.pairs.size);
  if (found.equal.empty()) return pairs;
  std::vector<std::uint32_t> more(n);  // rows that equal this one
  for (const Equal& one : found.equal) ++more[one.first];
  for (std::size_t i = 0; i < found.pairs.size; ++i) {
    const double a = more[found.pairs.a[i]];
    const double b = more[found.pairs.b[i]];
    pairs += (a + 1) * (b + 1) - 1;
  }
  if (with_equal)
    for (const double rows : more) pairs += rows * (rows + 1) / 2;
  return pairs;
}

}  // namespace

double expand(DistinctPairs& found, std::size_t n, bool with_equal, const PairSearch& search) {
  const double pairs_then = pairs_of_rows(found, n, with_equal);
  found.too_many |= pairs_then > static_cast<double>(search.most);
  if (found.too_many || found.equal.empty()) return pairs_then;
  FoundPairs& pairs = found.pairs;
  pairs.reserve(static_cast<std::size_t>(pairs_then));
  const Repeats like(found.equal, n);
  const std::size_t distinct = pairs.size;
  std::size_t turn = 0;
  bool stopped = false;
  const auto goes_on = [&] { return !(stopped |= turn++ % 1024 == 0 && search.poll()); };
  const auto add = [&](std::uint64_t a, std::uint64_t b, std::uint64_t bits) {
    pairs.push(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), bits);
  };
  for (std::size_t i = 0; i < distinct && goes_on(); ++i) {
    const std::uint32_t a = pairs.a[i];
    const std::uint32_t b = pairs.b[i];
    const std::uint64_t bits = pairs.distance[i];
    const auto like_a = like.of(a);
    for (const std::uint64_t x : like_a) add(x, b, bits);
    for (const std::uint64_t y : like.of(b)) {
      add(a, y, bits);
      for (const std::uint64_t x : like_a) add(x, y, bits);
    }
  }
  if (!with_equal) return pairs_then;
  like.each([&](std::uint64_t first, auto rows) {
    for (std::size_t i = 0; i < rows.size() && goes_on(); ++i) {
      add(first, rows[i], 0);
      for (std::size_t j = i + 1; j < rows.size(); ++j) add(rows[i], rows[j], 0);
    }
  });
  return pairs_then;
}

void sort_equal(const std::vector<Equal>& equal, std::size_t n, std::int64_t* first,
                std::int64_t* row) {
  const Repeats like(equal, n);
  std::copy(like.first.begin(), like.first.end(), first);
  std::copy(like.row.begin(), like.row.end(), row);
}

}  // namespace simindex
