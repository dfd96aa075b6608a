#include "methods/probe/bphs.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "bits/hamming.hpp"
#include "cpu/levels.hpp"
#include "cpu/memory.hpp"
#include "methods/probe/hits.hpp"
#include "methods/probe/sweep.hpp"

namespace simindex {
namespace {

// Hits of rows of any width.
struct WideHits {
  explicit WideHits(Room* shared) : room(shared) {}
  WideHits(const WideHits&) = delete;
  WideHits& operator=(const WideHits&) = delete;
  ~WideHits() { give_room(); }

  // Takes room for the hits that came since it was last called.
  void take_room() {
    if (room != nullptr) room->take(query.size() - taken);
    taken = query.size();
  }

  // From now on the hits take no room.
  void give_room() {
    if (room != nullptr) room->give(taken);
    room = nullptr;
  }

  std::vector<std::uint64_t> rows;  // (size, words)
  std::vector<std::int64_t> query;
  std::vector<std::uint16_t> distance;
  Room* room;
  std::size_t taken = 0;
};

// Whether a row and a query differ in no more bits of an earlier table's header than it flips.
// `masks` (earlier, words).
bool seen_before(const std::uint64_t* row, const std::uint64_t* query, std::size_t words,
                 std::span<const PermutedTable> earlier, const std::uint64_t* mask) {
  for (const PermutedTable& table : earlier) {
    std::uint64_t bits = 0;
    for (std::size_t w = 0; w < words; ++w) bits += portable::popcount((row[w] ^ query[w]) & *mask++);
    if (bits <= table.most_flips) return true;
  }
  return false;
}

// The headers of the tables before table `number`, (number, words), permuted as it is.
std::vector<std::uint64_t> earlier_headers(std::span<const PermutedTable> tables,
                                           std::size_t number) {
  const std::size_t words = tables[number].table.words;
  std::vector<std::uint64_t> masks(number * words);
  for (std::size_t i = 0; i < number; ++i)
    permute(tables[i].header.data(), 1, words, tables[number].rotations, masks.data() + i * words,
            kPortable);
  return masks;
}

// Adds what table `number` is the first to find; queries are permuted as the table is.
void keep_first_found(const std::uint64_t* queries, std::span<const PermutedTable> tables,
                      std::size_t number, const Matches& matches, WideHits& hits) {
  const PermutedTable& permutation = tables[number];
  const std::size_t words = permutation.table.words;
  const std::vector<std::uint64_t> masks = earlier_headers(tables, number);
  for (std::size_t i = 0; i < matches.size; ++i) {
    const std::size_t at = matches.row[i];
    const std::uint64_t* here = permutation.table.rows + at * words;
    if (at > 0 && std::equal(here, here + words, here - words)) continue;
    const std::int64_t query = matches.query[i];
    if (seen_before(here, queries + static_cast<std::size_t>(query) * words, words,
                    tables.first(number), masks.data()))
      continue;
    const std::size_t end = hits.rows.size();
    hits.rows.resize(end + words);
    permute(here, 1, words, permutation.inverse, hits.rows.data() + end, kPortable);
    hits.query.push_back(query);
    hits.distance.push_back(matches.distance[i]);
  }
}

const std::uint64_t kNoFlip = 0;

// Sweeps the table where so many probes repay reading all of it.
template <class Sink>
Counts look_up(const Table& table, const Search& search, std::span<const std::uint64_t> flips,
               std::size_t sweep_queries, int level, Sink& out) {
  if (sweep_queries != 0 && table.words == 1 && search.m >= sweep_queries)
    return swept_into(table, search, flips.data(), flips.size(), level, out);
  return probe_into(table, search, flips.data(), flips.size(), level, out);
}

void add(Counts& to, const Counts& more) {
  to.probes += more.probes;
  to.compared += more.compared;
}

// Words that are found again are looked up bucket by bucket where these have few rows, and by bisection
// where they have many: rows are in order, and 0 bits may differ. Where all of 1 M rows share their
// first 24 bits, each word would otherwise be compared with all rows, 250 us.
constexpr std::size_t kSampledWords = 64;
constexpr std::size_t kLongBucket = 256;  // rows, on average
constexpr std::size_t kBisected = 16;     // words at a time, so that their cache misses overlap

struct Bucket {
  std::uint32_t lo;
  std::uint32_t hi;
};

Bucket bucket_of(const Table& table, std::uint64_t word) {
  const auto n = static_cast<std::uint32_t>(table.n);
  if (table.directory_bits == 0) return {0, n};
  const std::size_t place = word >> (64 - table.directory_bits);
  const std::uint32_t lo = std::min(table.directory[place], n);
  return {lo, std::max(lo, std::min(table.directory[place + 1], n))};
}

bool in_long_buckets(const Table& table, const std::uint64_t* words, std::size_t m) {
  const std::size_t step = std::max<std::size_t>(1, m / kSampledWords);
  std::size_t rows = 0;
  std::size_t sampled = 0;
  for (std::size_t i = 0; i < m; i += step, ++sampled) {
    const Bucket bucket = bucket_of(table, words[i]);
    rows += bucket.hi - bucket.lo;
  }
  return rows > kLongBucket * sampled;
}

void bisect(const Table& table, const std::uint64_t* words, std::size_t m, FoundRows& rows) {
  for (std::size_t begin = 0; begin < m; begin += kBisected) {
    const std::size_t count = std::min(kBisected, m - begin);
    std::uint32_t first[kBisected];  // no row before it has the word
    std::uint32_t left[kBisected];   // rows from there on, one of which is the first if any has it
    std::uint32_t end[kBisected];
    std::uint32_t longest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Bucket bucket = bucket_of(table, words[begin + i]);
      table.touch(bucket.lo, bucket.hi);
      first[i] = bucket.lo;
      left[i] = bucket.hi - bucket.lo;
      end[i] = bucket.hi;
      longest = std::max(longest, left[i]);
    }
    for (; longest > 1; longest -= longest / 2) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t half = left[i] / 2;  // 0 of a bucket that is narrowed down
        if (half != 0 && table.rows[first[i] + half - 1] < words[begin + i]) first[i] += half;
        left[i] -= half;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t word = words[begin + i];
      std::uint32_t row = first[i];
      for (; row < end[i] && table.rows[row] == word; ++row)
        rows.take(static_cast<std::int64_t>(begin + i), row, 0, 0);
    }
  }
}

void find_words(const Table& own, const Hits& hits, std::size_t sweep_queries, int level,
                FoundRows& rows) {
  if (in_long_buckets(own, hits.words.get(), hits.distinct))
    return bisect(own, hits.words.get(), hits.distinct, rows);
  const Search again{hits.words.get(), hits.distinct, 0};
  look_up(own, again, {&kNoFlip, 1}, sweep_queries, level, rows);
}

// All matches of 64-bit rows.
FoundAgain bphs_words(const Table& own, std::span<const PermutedTable> tables, const Search& search,
                      std::size_t sweep_queries, int level) {
  FoundAgain result{Found(search)};
  Found& out = result.found;
  Hits hits(search.room);
  Memory<std::uint64_t> permuted = allocate<std::uint64_t>(search.m);
  for (std::size_t number = 0; number < tables.size(); ++number) {
    const PermutedTable& permutation = tables[number];
    if (permutation.rotations.empty()) {
      add(out, look_up(permutation.table, search, permutation.flips, sweep_queries, level,
                       out.matches));
      continue;
    }
    permute(search.queries, search.m, 1, permutation.rotations, permuted.get(), level);
    const std::vector<std::uint64_t> masks = earlier_headers(tables, number);
    std::vector<Header> earlier(number);
    for (std::size_t i = 0; i < number; ++i) earlier[i] = {masks[i], tables[i].most_flips};
    hits.begin(permutation.table.rows, earlier);
    const Search part{permuted.get(), search.m, search.h, false, search.room};
    add(out, look_up(permutation.table, part, permutation.flips, sweep_queries, level, hits));
    hits.end(permutation.table.n, permutation.inverse, level);
  }
  FoundRows rows(hits.distinct);
  find_words(own, hits, sweep_queries, level, rows);
  for (std::size_t word = 0; word < hits.distinct; ++word) result.missing += rows.count[word] == 0;
  hits.give_room();  // to the matches that they become
  for (std::size_t hit = 0; hit < hits.size; ++hit) {
    const std::uint32_t word = hits.of[hit];
    for (std::uint32_t i = 0; i < rows.count[word]; ++i)
      out.matches.push(hits.query[hit], rows.first[word] + i, hits.distance[hit]);
  }
  return result;
}

// The rows of table 0 with the fingerprints that were hit.
void find_again(const Table& own, const WideHits& hits, bool first, int level, FoundAgain& result) {
  const Search again{hits.rows.data(), hits.query.size(), 0, first, result.found.matches.room};
  const Found found = probe(own, again, &kNoFlip, 1, 0, level);
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

// All matches of rows of any width.
FoundAgain bphs_wide(const Table& own, std::span<const PermutedTable> tables, const Search& search,
                     int level) {
  FoundAgain result{Found(search)};
  Found& out = result.found;
  const std::size_t words = own.words;
  WideHits hits(search.room);
  Memory<std::uint64_t> permuted = allocate<std::uint64_t>(search.m * words);
  for (std::size_t number = 0; number < tables.size(); ++number) {
    const PermutedTable& permutation = tables[number];
    const std::span<const std::uint64_t> flips = permutation.flips;
    if (permutation.rotations.empty()) {
      add(out, look_up(permutation.table, search, flips, 0, level, out.matches));
      continue;
    }
    permute(search.queries, search.m, words, permutation.rotations, permuted.get(), level);
    const Search part{permuted.get(), search.m, search.h, false, search.room};
    const Found found = probe(permutation.table, part, flips.data(), flips.size(), 0, level);
    add(out, found);
    keep_first_found(permuted.get(), tables, number, found.matches, hits);
    hits.take_room();
  }
  hits.give_room();  // to the matches that they become
  find_again(own, hits, false, level, result);
  return result;
}

FoundAgain bphs_first(const Table& own, std::span<const PermutedTable> tables,
                      const Search& search, int level) {
  FoundAgain result{Found(search)};
  Found& out = result.found;
  const std::size_t words = own.words;
  std::vector<std::int64_t> left(search.m);  // queries that have found nothing yet
  std::iota(left.begin(), left.end(), std::int64_t{0});
  std::vector<std::uint8_t> matched(search.m);
  WideHits hits(nullptr);  // one a query at most
  Memory<std::uint64_t> some = allocate<std::uint64_t>(search.m * words);
  Memory<std::uint64_t> permuted = allocate<std::uint64_t>(search.m * words);
  for (const PermutedTable& permutation : tables) {
    for (std::size_t i = 0; i < left.size(); ++i)
      std::copy_n(search.queries + static_cast<std::size_t>(left[i]) * words, words,
                  some.get() + i * words);
    Search part{some.get(), left.size(), search.h, true, search.room};
    const bool is_own = permutation.rotations.empty();
    if (!is_own) {
      permute(some.get(), part.m, words, permutation.rotations, permuted.get(), level);
      part.queries = permuted.get();
    }
    const std::span<const std::uint64_t> flips = permutation.flips;
    const Found found = probe(permutation.table, part, flips.data(), flips.size(), 0, level);
    add(out, found);
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
                std::size_t sweep_queries, int level) {
  if (search.m == 0) return {};
  if (search.first) return bphs_first(own, tables, search, level);
  if (own.words == 1) return bphs_words(own, tables, search, sweep_queries, level);
  return bphs_wide(own, tables, search, level);
}

}  // namespace simindex
