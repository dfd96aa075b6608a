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

template <int kWords>
SIMINDEX_INLINE bool equal_rows(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
  if constexpr (kWords == 1) return *a == *b;
  return std::equal(a, a + words, b);
}

// What is looked up in a table, as the columns stand in another one.
struct Header {
  const std::uint64_t* mask;  // (words,)
  std::uint64_t most_flips;
};

// Whether a row and a query differ in no more bits of an earlier table's header than it flips.
template <int kWords>
SIMINDEX_INLINE bool seen_before(const std::uint64_t* row, const std::uint64_t* query,
                                 std::size_t words, std::span<const Header> earlier) {
  for (const Header& header : earlier) {
    std::uint64_t bits = 0;
    if constexpr (kWords == 1) {
      bits = (row[0] ^ query[0]) & header.mask[0];
      // What is left when as many bits are taken away as may differ.
      for (std::uint64_t i = 0; i < header.most_flips; ++i) bits &= bits - (bits != 0);
      if (bits == 0) return true;
    } else {
      for (std::size_t w = 0; w < words; ++w)
        bits += portable::popcount((row[w] ^ query[w]) & header.mask[w]);
      if (bits <= header.most_flips) return true;
    }
  }
  return false;
}

// Adds what table `number` is the first to find; queries are permuted as the table is. Most matches
// have been seen before, so only what is kept is un-permuted. Rows and queries are long out of the
// caches, so each is asked for while those before it are looked at.
template <int kWords>
void keep_first_found(const std::uint64_t* queries, std::span<const PermutedTable> tables,
                      std::size_t number, const Matches& matches, Hits& hits) {
  constexpr std::size_t kAhead = 24;
  if (matches.size == 0) return;
  const PermutedTable& permutation = tables[number];
  const std::size_t words = kWords == 1 ? 1 : permutation.table.words;
  std::vector<std::uint64_t> masks(number * words);
  std::vector<Header> earlier(number);
  for (std::size_t i = 0; i < number; ++i) {
    permute(tables[i].header.data(), 1, words, permutation.rotations, masks.data() + i * words,
            kPortable);
    earlier[i] = {masks.data() + i * words, tables[i].most_flips};
  }
  for (std::size_t i = 0; i < matches.size; ++i) {
    if (i + kAhead < matches.size) {
      __builtin_prefetch(permutation.table.rows + matches.row[i + kAhead] * words);
      __builtin_prefetch(queries + static_cast<std::size_t>(matches.query[i + kAhead]) * words);
    }
    const std::size_t at = matches.row[i];
    const std::uint64_t* here = permutation.table.rows + at * words;
    if (at > 0 && equal_rows<kWords>(here, here - words, words)) continue;
    const std::int64_t query = matches.query[i];
    if (seen_before<kWords>(here, queries + static_cast<std::size_t>(query) * words, words,
                            earlier))
      continue;
    const std::size_t end = hits.rows.size();
    hits.rows.resize(end + words);
    std::uint64_t* row = hits.rows.data() + end;
    for (const Rotation& rotation : permutation.inverse)
      row[kWords == 1 ? 0 : rotation.target] |=
          std::rotl(here[kWords == 1 ? 0 : rotation.source], static_cast<int>(rotation.left)) &
          rotation.mask;
    hits.query.push_back(query);
    hits.distance.push_back(matches.distance[i]);
  }
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

namespace {

Found look_up(const PermutedTable& permutation, const Search& search, std::size_t sweep_probes,
              int level) {
  const std::span<const std::uint64_t> flips = permutation.flips;
  if (sweep_probes != 0 && permutation.table.words == 1 &&
      search.m * flips.size() >= sweep_probes)
    return swept(permutation.table, search, flips.data(), flips.size(), level);
  return probe(permutation.table, search, flips.data(), flips.size(), 0, level);
}

void append(Matches& to, const Matches& from) {
  for (std::size_t i = 0; i < from.size; ++i)
    to.push(from.query[i], from.row[i], from.distance[i]);
}

// The rows of table 0 with the fingerprints that were hit.
void find_again(const Table& own, const Hits& hits, bool first, int level, FoundAgain& result) {
  const std::uint64_t no_flip = 0;
  const Search again{hits.rows.data(), hits.query.size(), 0, first};
  const Found found = probe(own, again, &no_flip, 1, 0, level);
  std::int64_t last = -1;  // matches come in the order of their hits
  result.missing = hits.query.size();
  for (std::size_t i = 0; i < found.matches.size; ++i) {
    const std::int64_t hit = found.matches.query[i];
    result.missing -= hit != last;
    last = hit;
    result.found.matches.push(hits.query[static_cast<std::size_t>(hit)], found.matches.row[i],
                              hits.distance[static_cast<std::size_t>(hit)]);
  }
}

FoundAgain bphs_all(const Table& own, std::span<const PermutedTable> tables, const Search& search,
                    std::size_t sweep_probes, int level) {
  FoundAgain result;
  Found& out = result.found;
  const std::size_t words = own.words;
  Hits hits;
  Memory<std::uint64_t> permuted = allocate<std::uint64_t>(search.m * words);
  for (std::size_t number = 0; number < tables.size(); ++number) {
    const PermutedTable& permutation = tables[number];
    const bool is_own = permutation.rotations.empty();
    Search part = search;
    if (!is_own) {
      permute(search.queries, search.m, words, permutation.rotations, permuted.get(), level);
      part.queries = permuted.get();
    }
    Found found = look_up(permutation, part, sweep_probes, level);
    out.probes += found.probes;
    out.compared += found.compared;
    if (is_own) {
      append(out.matches, found.matches);
    } else if (words == 1) {
      keep_first_found<1>(part.queries, tables, number, found.matches, hits);
    } else {
      keep_first_found<0>(part.queries, tables, number, found.matches, hits);
    }
  }
  find_again(own, hits, false, level, result);
  return result;
}

FoundAgain bphs_first(const Table& own, std::span<const PermutedTable> tables,
                      const Search& search, int level) {
  FoundAgain result;
  Found& out = result.found;
  const std::size_t words = own.words;
  std::vector<std::int64_t> left(search.m);  // queries that have found nothing yet
  std::iota(left.begin(), left.end(), std::int64_t{0});
  std::vector<std::uint8_t> matched(search.m);
  Hits hits;
  Memory<std::uint64_t> some = allocate<std::uint64_t>(search.m * words);
  Memory<std::uint64_t> permuted = allocate<std::uint64_t>(search.m * words);
  for (const PermutedTable& permutation : tables) {
    for (std::size_t i = 0; i < left.size(); ++i)
      std::copy_n(search.queries + static_cast<std::size_t>(left[i]) * words, words,
                  some.get() + i * words);
    Search part{some.get(), left.size(), search.h, true};
    const bool is_own = permutation.rotations.empty();
    if (!is_own) {
      permute(some.get(), part.m, words, permutation.rotations, permuted.get(), level);
      part.queries = permuted.get();
    }
    const Found found = look_up(permutation, part, 0, level);
    out.probes += found.probes;
    out.compared += found.compared;
    const std::size_t before = hits.rows.size();
    if (!is_own) hits.rows.resize(before + found.matches.size * words);
    for (std::size_t i = 0; i < found.matches.size; ++i) {
      const std::int64_t query = left[static_cast<std::size_t>(found.matches.query[i])];
      const std::uint32_t at = found.matches.row[i];
      matched[static_cast<std::size_t>(query)] = 1;
      if (is_own) {
        out.matches.push(query, at, found.matches.distance[i]);
        continue;
      }
      permute(permutation.table.rows + at * words, 1, words, permutation.inverse,
              hits.rows.data() + before + i * words, kPortable);
      hits.query.push_back(query);
      hits.distance.push_back(found.matches.distance[i]);
    }
    std::erase_if(left, [&](std::int64_t query) {
      return matched[static_cast<std::size_t>(query)] != 0;
    });
    if (left.empty()) break;
  }
  find_again(own, hits, true, level, result);
  return result;
}

}  // namespace

FoundAgain bphs(const Table& own, std::span<const PermutedTable> tables, const Search& search,
                std::size_t sweep_probes, int level) {
  if (search.m == 0) return {};
  return search.first ? bphs_first(own, tables, search, level)
                      : bphs_all(own, tables, search, sweep_probes, level);
}

}  // namespace simindex
