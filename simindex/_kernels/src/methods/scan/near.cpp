#include "methods/scan/near.hpp"

#include "methods/scan/scan.hpp"

namespace simindex {
namespace {

FoundAgain first_near(const Passage& passage, const Search& search, int level) {
  const Table& table = passage.table;
  FoundAgain first;
  switch (passage.way) {
    case Way::kScan:
      table.touch(0, table.n);
      first.found = scan(table.rows, table.n, table.words, search, level);
      break;
    case Way::kProbe:
      first.found = probe(table, search, passage.flips.data(), passage.flips.size(), 0, level);
      break;
    case Way::kPermuted:
      first = bphs(table, passage.permuted, search, 0, level);
      break;
  }
  return first;
}

}  // namespace

Nearest nearest(std::span<const Passage> passages, const std::uint64_t* query, std::uint64_t h,
                int level) {
  Nearest nearest;
  Search search{query, 1, h, true};
  for (std::size_t number = 0; number < passages.size(); ++number) {
    while (true) {
      const FoundAgain first = first_near(passages[number], search, level);
      if (first.missing != 0) {
        nearest.unsure = true;
        return nearest;
      }
      const Matches& matches = first.found.matches;
      if (matches.size == 0) break;
      nearest.found = {number, matches.row[0], matches.distance[0]};
      if (matches.distance[0] == 0) return nearest;
      search.h = matches.distance[0] - 1u;
    }
  }
  return nearest;
}

}  // namespace simindex
