#include "bphs.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "compare.hpp"
#include "cpu.hpp"
#include "intrinsics.hpp"
#include "memory.hpp"
#include "sweep.hpp"

namespace simindex {
namespace {

namespace portable_level {
#define SIMINDEX_LEVEL_TARGET
#include "bphs.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "bphs.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "bphs.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level
#endif

// Fingerprints that permuted tables found, and for which query.
struct Hits {
  std::vector<std::uint64_t> rows;  // (size, words)
  std::vector<std::int64_t> query;
  std::vector<std::uint16_t> distance;
};

// Whether an earlier table's header, too, differs in no more bits than it flips.
bool seen_before(const std::uint64_t* row, const std::uint64_t* query, std::size_t words,
                 std::span<const PermutedTable> earlier) {
  for (const PermutedTable& table : earlier) {
    std::uint64_t bits = 0;
    for (std::size_t w = 0; w < words; ++w)
      bits += portable::popcount((row[w] ^ query[w]) & table.header[w]);
    if (bits <= table.most_flips) return true;
  }
  return false;
}

}  // namespace

void permute(const std::uint64_t* from, std::size_t n, std::size_t words,
             std::span<const Rotation> rotations, std::uint64_t* to, int level) {
  if (words == 1) {
#if SIMINDEX_X86
    if (level >= kAvx512Vpopcntdq) return avx512_level::permute_words(from, n, rotations, to);
    if (level >= kAvx2) return avx2_level::permute_words(from, n, rotations, to);
#else
    (void)level;
#endif
    return portable_level::permute_words(from, n, rotations, to);
  }
  std::fill_n(to, n * words, 0);
  for (std::size_t i = 0; i < n; ++i, from += words, to += words)
    for (const Rotation& rotation : rotations)
      to[rotation.target] |=
          std::rotl(from[rotation.source], static_cast<int>(rotation.left)) & rotation.mask;
}

FoundAgain bphs(const Table& own, std::span<const PermutedTable> tables, const Search& search,
                std::size_t sweep_probes, int level) {
  FoundAgain result;
  Found& out = result.found;
  const std::size_t words = own.words;
  std::vector<std::int64_t> left;  // in `first` mode: the queries that have found nothing yet
  std::vector<std::uint8_t> matched;
  if (search.first) {
    left.resize(search.m);
    std::iota(left.begin(), left.end(), std::int64_t{0});
    matched.assign(search.m, 0);
  }
  Hits hits;
  Memory<std::uint64_t> some = allocate<std::uint64_t>(search.first ? search.m * words : 0);
  Memory<std::uint64_t> permuted = allocate<std::uint64_t>(search.m * words);
  std::vector<std::uint64_t> row(words);
  for (std::size_t number = 0; number < tables.size(); ++number) {
    const PermutedTable& permutation = tables[number];
    const bool is_own = permutation.rotations.empty();
    Search part = search;
    if (search.first && left.size() < search.m) {
      for (std::size_t i = 0; i < left.size(); ++i)
        std::copy_n(search.queries + static_cast<std::size_t>(left[i]) * words, words,
                    some.get() + i * words);
      part.queries = some.get();
      part.m = left.size();
    }
    if (part.m == 0) break;
    if (!is_own) {
      permute(part.queries, part.m, words, permutation.rotations, permuted.get(), level);
      part.queries = permuted.get();
    }
    const std::span<const std::uint64_t> flips = permutation.flips;
    const bool sweep = sweep_probes != 0 && !search.first && words == 1 &&
                       part.m * flips.size() >= sweep_probes;
    const Found found = sweep
        ? swept(permutation.table, part, flips.data(), flips.size(), level)
        : probe(permutation.table, part, flips.data(), flips.size(), 0, level);
    out.probes += found.probes;
    out.compared += found.compared;
    const std::uint64_t* rows = permutation.table.rows;
    for (std::size_t i = 0; i < found.matches.size; ++i) {
      const std::size_t at = found.matches.row[i];
      const std::int64_t query = search.first
          ? left[static_cast<std::size_t>(found.matches.query[i])] : found.matches.query[i];
      if (search.first) matched[static_cast<std::size_t>(query)] = 1;
      if (is_own) {
        out.matches.push(query, found.matches.row[i], found.matches.distance[i]);
        continue;
      }
      const std::uint64_t* here = rows + at * words;
      if (!search.first && at > 0 && std::equal(here, here + words, here - words)) continue;
      permute(here, 1, words, permutation.inverse, row.data(), 0);
      if (!search.first &&
          seen_before(row.data(), search.queries + static_cast<std::size_t>(query) * words, words,
                      tables.first(number)))
        continue;
      hits.rows.insert(hits.rows.end(), row.begin(), row.end());
      hits.query.push_back(query);
      hits.distance.push_back(found.matches.distance[i]);
    }
    if (search.first)
      std::erase_if(left, [&](std::int64_t query) {
        return matched[static_cast<std::size_t>(query)] != 0;
      });
  }
  if (hits.query.empty()) return result;
  const std::uint64_t no_flip = 0;
  const Search again{hits.rows.data(), hits.query.size(), 0, search.first};
  const Found found = probe(own, again, &no_flip, 1, 0, level);
  std::int64_t last = -1;  // matches come in the order of their hits
  result.missing = hits.query.size();
  for (std::size_t i = 0; i < found.matches.size; ++i) {
    const std::int64_t hit = found.matches.query[i];
    result.missing -= hit != last;
    last = hit;
    out.matches.push(hits.query[static_cast<std::size_t>(hit)], found.matches.row[i],
                     hits.distance[static_cast<std::size_t>(hit)]);
  }
  return result;
}

}  // namespace simindex
