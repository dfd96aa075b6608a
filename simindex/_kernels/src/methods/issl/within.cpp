#include <algorithm>
#include <bit>
#include <vector>

#include "methods/issl/issl.hpp"
#include "methods/issl/lists.hpp"
#include "methods/issl/row_buckets.hpp"
#include "methods/issl/scores.hpp"
#include "methods/scan/scan.hpp"

namespace simindex {
namespace {

// Whether a slice of the two is within max_error.
bool shares_list(const std::uint64_t* row, const std::uint64_t* query, std::size_t words, int width,
                 int max_error) {
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  for (std::size_t w = 0; w < words; ++w)
    for (int at = 0; at < 64; at += width)
      if (std::popcount(((row[w] ^ query[w]) >> at) & mask) <= max_error) return true;
  return false;
}

// Slices that a row within h must share one list of, if it shares any: all of them, or by the pigeonhole
// principle so many that their errors, each increased by one, exceed h.
Visit needed(const SliceTable& table, const Errors& errors, std::uint64_t h, int max_error) {
  const std::uint64_t each = static_cast<std::uint64_t>(max_error) + 1;
  if (h >= each * table.slices) return {table.slices, 0};
  const std::uint64_t rest = (h + 1) % each;
  return {static_cast<std::size_t>((h + 1) / each), rest == 0 ? 0 : errors.upto[rest - 1]};
}

}  // namespace

SliceCounts slices_within(const SliceTable& table, const SliceSearch& search, Matches& matches,
                          const std::function<bool()>& poll) {
  SliceCounts counts;
  if (table.n == 0 || search.m == 0) return counts;
  const RowScoring scoring = row_scoring(search.level);
  const Errors errors(table.width, search.max_error);
  const Visit visit = needed(table, errors, search.h, search.max_error);
  const bool all = search.h < (static_cast<std::uint64_t>(search.max_error) + 1) * table.slices;
  const std::size_t lists = visit.lists(errors);
  // A row that differs in every bit is in a list of w errors, but gains nothing there.
  const std::uint64_t most =
      search.max_error == table.width ? 0 : most_followed(table, lists);
  RowBuckets buckets(table.n, table.words, 0);
  Growing<std::uint32_t> rows;
  std::vector<std::uint16_t> distances;
  std::vector<std::uint64_t> near;  // row << 16 | distance
  for (std::size_t q = 0; q < search.m; ++q) {
    if ((counts.stopped = poll())) return counts;
    const std::uint64_t* query = search.queries + q * table.words;
    const auto number = static_cast<std::int64_t>(q);
    counts.lists += lists;
    Followed end = Followed::kTooMany;
    std::uint64_t followed = 0;
    if (most != 0) {
      buckets.begin();
      end = follow(table, query, errors, visit, most, followed, buckets);
      counts.scored += followed;
    }
    if (end == Followed::kDamaged) {
      counts.damaged += buckets.damaged;
      continue;
    }
    bool done = false;
    if (end == Followed::kTooMany) {
      constexpr std::size_t kPart = 1 << 16;
      for (std::size_t lo = 0; lo < table.n && !done; lo += kPart) {
        if (lo != 0 && (counts.stopped = poll())) return counts;
        const std::uint64_t* from = table.rows + lo * table.words;
        table.touch_rows(lo, std::min(kPart, table.n - lo));
        const Found found = scan(from, std::min(kPart, table.n - lo), table.words,
                                 Search{query, 1, search.h, all && search.first, matches.room}, search.level);
        counts.compared += found.compared;
        for (std::size_t i = 0; i < found.matches.size && !done; ++i) {
          const std::uint32_t row = found.matches.row[i];
          if (!all && !shares_list(from + row * table.words, query, table.words, table.width,
                                   search.max_error))
            continue;
          matches.push(number, static_cast<std::uint32_t>(lo) + row, found.matches.distance[i]);
          done = search.first;
        }
      }
      continue;
    }
    for (std::size_t b = 0; b < buckets.count() && !done; ++b) {
      const std::size_t entries = buckets.entries(b);
      rows.reserve(entries + 1);
      std::uint32_t* to = rows.data();
      buckets.sum(b, [&to](std::uint32_t row, std::uint32_t score) {
        *to = row;
        to += score != 0;
      });
      const std::size_t size = static_cast<std::size_t>(to - rows.data());
      if (distances.size() < size) distances.resize(size);
      table.touch_rows(rows.data(), size);
      scoring.distances(table.rows, table.words, rows.data(), size, query, distances.data());
      counts.compared += size;
      near.clear();
      for (std::size_t i = 0; i < size; ++i)
        if (distances[i] <= search.h)
          near.push_back(std::uint64_t{rows[i]} << 16 | distances[i]);
      std::sort(near.begin(), near.end());
      for (const std::uint64_t one : near) {
        matches.push(number, static_cast<std::uint32_t>(one >> 16), one & 0xffff);
        if ((done = search.first)) break;
      }
    }
  }
  return counts;
}

}  // namespace simindex
