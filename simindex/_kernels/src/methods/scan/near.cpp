#include "methods/scan/near.hpp"

#include "methods/scan/scan.hpp"

namespace simindex {
namespace {

bool near(const Passage& passage, const Search& search, int level) {
  const Table& table = passage.table;
  switch (passage.way) {
    case Way::kScan:
      table.touch(0, table.n);
      return scan(table.rows, table.n, table.words, search, level).matches.size != 0;
    case Way::kProbe:
      return probe(table, search, passage.flips.data(), passage.flips.size(), 0, level)
                 .matches.size != 0;
    case Way::kPermuted: {
      const FoundAgain again = bphs(table, passage.permuted, search, 0, level);
      return again.missing != 0 || again.found.matches.size != 0;
    }
  }
  return true;
}

}  // namespace

bool any_near(std::span<const Passage> passages, const std::uint64_t* query, std::uint64_t h,
              int level) {
  const Search search{query, 1, h, true};
  for (const Passage& passage : passages)
    if (near(passage, search, level)) return true;
  return false;
}

}  // namespace simindex
