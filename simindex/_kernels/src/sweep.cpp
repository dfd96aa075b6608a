#include "sweep.hpp"

#include <algorithm>
#include <map>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bucket.hpp"
#include "hits.hpp"
#include "memory.hpp"
#include "probe_groups.hpp"

namespace simindex {
namespace {

constexpr std::uint32_t kSlabRows = 2048;  // stay in the first-level cache
constexpr std::uint32_t kAheadRows = 512;  // two long buckets

// The first pass: the own bucket and the flipped ones of each query.
class Partitioner {
 public:
  Partitioner(const Table& table, const Vosh& plan, int level)
      : plan_(plan), lanes_(vosh_lanes(level)), memory_(plan.candidate_count()),
        masks_(allocate<std::uint32_t>(plan.flips * kLanes)), words_(table.words),
        right_(32 - table.header_bits), left_(table.directory_bits - table.header_bits) {}

  void run(const std::uint64_t* queries, const float* weights, std::size_t m, Probes& probes) {
    for (std::size_t query = 0; query < m; query += kLanes) {
      const std::size_t count = std::min(kLanes, m - query);
      lanes_(plan_, weights + query * plan_.bits, count, memory_, masks_.get(), pending_);
      std::uint64_t word[kLanes];
      std::uint32_t upper[kLanes];
      for (std::size_t lane = 0; lane < count; ++lane) {
        word[lane] = queries[(query + lane) * words_];
        upper[lane] = static_cast<std::uint32_t>(word[lane] >> 32);
        probes.add(word[lane], upper[lane] >> right_ << left_,
                   static_cast<std::uint32_t>(query + lane));
      }
      for (std::size_t flip = 0; flip < plan_.flips; ++flip) {
        const std::uint32_t* mask = masks_.get() + flip * kLanes;
        for (std::size_t lane = 0; lane < count; ++lane)
          probes.add(word[lane], (upper[lane] ^ mask[lane]) >> right_ << left_,
                     static_cast<std::uint32_t>(query + lane));
      }
    }
    probes.finish();
  }

 private:
  const Vosh& plan_;
  VoshLanes lanes_;
  VoshMemory memory_;
  Memory<std::uint32_t> masks_;  // (k, 16), upper halves
  Pending pending_;              // stays empty
  std::size_t words_;
  int right_;
  int left_;
};

// Buckets of so many rows, and so many probes for each, are swept bucket by bucket.
constexpr std::size_t kLongBucket = 24;
constexpr std::size_t kSharedBucket = 2;

bool by_bucket(const Table& table, std::size_t probes) {
  const std::size_t buckets = std::size_t{1} << table.header_bits;
  return table.words == 1 && table.n >= kLongBucket * buckets && probes >= kSharedBucket * buckets;
}

// Flip masks of a header as entries: of each set of bits above the partition's, one, expanded by the
// sets of bits within the partition that go with it. Two tables of 10 M rows with one flipped bit of 20
// have 10 entries a query in place of 21 probes.
struct Entries {
  struct Entry {
    std::uint32_t flip;  // of the place
    std::uint32_t kind;
  };

  Entries(const Table& table, std::span<const std::uint64_t> flips, int partition_bits)
      : expansions{{0}} {
    const int right = 64 - table.header_bits;
    const int left = table.directory_bits - table.header_bits;
    const std::uint32_t within =
        (std::uint32_t{1} << (table.directory_bits - partition_bits)) - 1;
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_partition;
    for (const std::uint64_t flip : flips) {
      const auto place = static_cast<std::uint32_t>(flip >> right << left);
      by_partition[place & ~within].push_back(place & within);
    }
    for (const auto& [flip, masks] : by_partition) {
      auto known = std::find(expansions.begin(), expansions.end(), masks);
      if (known == expansions.end() && expansions.size() < kMostKinds) {
        expansions.push_back(masks);
        known = expansions.end() - 1;
      }
      if (known != expansions.end()) {
        entries.push_back({flip, static_cast<std::uint32_t>(known - expansions.begin())});
        continue;
      }
      for (const std::uint32_t mask : masks) entries.push_back({flip | mask, 0});
    }
  }

  static constexpr std::size_t kMostKinds = 4;
  Probes::Expansions expansions;
  std::vector<Entry> entries;
};

namespace portable_level {
using portable::kSieves;
using portable::locate;
using portable::LongRows;
using portable::look_long;
using portable::look_soon;
using portable::settle;
#define SIMINDEX_LEVEL_TARGET
#include "sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
using avx2::kSieves;
using avx2::locate;
using avx2::LongRows;
using avx2::look_long;
using avx2::look_soon;
using avx2::settle;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
using avx512::kSieves;
using avx512::locate;
using avx512::LongRows;
using avx512::look_long;
using avx512::look_soon;
using avx512::settle;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level

namespace avx512_vpopcntdq_level {
using avx512_vpopcntdq::kSieves;
using avx512_vpopcntdq::locate;
using avx512_vpopcntdq::LongRows;
using avx512_vpopcntdq::look_long;
using avx512_vpopcntdq::look_soon;
using avx512_vpopcntdq::settle;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_vpopcntdq_level
#endif

template <class Sink>
void sweep_at(const Table& table, const Search& search, const Probes& probes, bool by_bucket,
              std::int64_t first_number, int level, Sink& out, Counts& counts) {
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq)
    return avx512_vpopcntdq_level::sweep_any(table, search, probes, by_bucket, first_number, out, counts);
  if (level >= kAvx512)
    return avx512_level::sweep_any(table, search, probes, by_bucket, first_number, out, counts);
  if (level >= kAvx2)
    return avx2_level::sweep_any(table, search, probes, by_bucket, first_number, out, counts);
#else
  (void)level;
#endif
  portable_level::sweep_any(table, search, probes, by_bucket, first_number, out, counts);
}

// Cuts a batch into sub-batches whose `entries_each` a query take bounded memory; `partition` fills in
// the probes of one.
template <class Sink, class Partition>
void sweep_parts(const Table& table, const Search& search, int partition_bits,
                 const Probes::Expansions& expansions, std::size_t entries_each,
                 std::size_t probes_each, int level, Sink& out, Counts& counts,
                 const Partition& partition) {
  const std::size_t most = std::max(kLanes, kProbeBytes / (sizeof(Group) / kGroup) / entries_each);
  const std::size_t parts = (search.m + most - 1) / most;
  const std::size_t size = (search.m + parts - 1) / parts;
  Probes probes(table, partition_bits, expansions, size * entries_each);
  for (std::size_t start = 0; start < search.m; start += size) {
    const std::size_t m = std::min(size, search.m - start);
    const Search part{search.queries + start * table.words, m, search.h, false};
    probes.clear();
    partition(start, m, probes);
    sweep_at(table, part, probes, by_bucket(table, m * entries_each) && entries_each == probes_each,
             static_cast<std::int64_t>(start), level, out, counts);
    counts.probes += m * probes_each;
  }
}

}  // namespace

Found psm_swept(const Table& table, const Search& search, const Vosh& plan, const float* weights,
                int level) {
  // Networks exist for 1 .. 32 header bits, so a header is the top of the upper half word.
  if (search.first || !plan.networked() || plan.flips == 0 || table.header_bits == 0)
    return psm(table, search, plan, weights, level);
  Found found;
  if (table.n == 0 || search.m == 0) return found;
  Partitioner partitioner(table, plan, level);
  const std::size_t each = plan.flips + 1;
  sweep_parts(table, search, partition_bits(table, kMaxPartitionBits), {{0}}, each, each, level,
              found.matches, found, [&](std::size_t start, std::size_t m, Probes& probes) {
                partitioner.run(search.queries + start * table.words, weights + start * plan.bits,
                                m, probes);
              });
  return found;
}

template <class Sink>
Counts swept_into(const Table& table, const Search& search, const std::uint64_t* flips,
                  std::size_t k, int level, Sink& out) {
  if (search.first || k == 0 || table.header_bits == 0)
    return probe_into(table, search, flips, k, level, out);
  Counts counts;
  if (table.n == 0 || search.m == 0) return counts;
  const int bits =
      partition_bits(table, k == 1 ? kMaxPartitionBits : kMaxPartitionBits - kKindBits);
  const bool apart = k == 1 || by_bucket(table, search.m * k);
  const Entries plan(table, {flips, k}, apart ? table.header_bits : bits);
  const int right = 64 - table.header_bits;
  const int left = table.directory_bits - table.header_bits;
  sweep_parts(table, search, bits, plan.expansions, plan.entries.size(), k, level, out, counts,
              [&](std::size_t start, std::size_t m, Probes& probes) {
                for (std::size_t query = 0; query < m; ++query) {
                  const std::uint64_t word = search.queries[(start + query) * table.words];
                  const auto place = static_cast<std::uint32_t>(word >> right << left);
                  for (const Entries::Entry& entry : plan.entries)
                    probes.add(word, place ^ entry.flip, static_cast<std::uint32_t>(query),
                               entry.kind);
                }
                probes.finish();
              });
  return counts;
}

template Counts swept_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           Matches&);
template Counts swept_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           Hits&);
template Counts swept_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           FoundRows&);

}  // namespace simindex
