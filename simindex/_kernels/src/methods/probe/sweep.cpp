#include "methods/probe/sweep.hpp"

#include <algorithm>
#include <map>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/memory.hpp"
#include "methods/probe/bucket.hpp"
#include "methods/probe/hits.hpp"
#include "methods/probe/probe_groups.hpp"

namespace simindex {
namespace {

constexpr std::uint32_t kSlabRows = 2048;  // stay in the first-level cache
constexpr std::uint32_t kAheadRows = 512;  // two long buckets
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kMostRowLines = 8;  // of weights that are asked for, 128 bits
static_assert(kLanes * kMostRowLines <= Pending::kCapacity);
static_assert(kLanes == kGroup);

// How the probes of a partition are looked up: one by one, or bucket by bucket.
enum class Way { kProbes, kSharedBuckets, kLongBuckets };

// What of a partitioned batch is swept: partitions begin .. end-1.
struct Part {
  const Probes& probes;
  std::size_t begin;
  std::size_t end;
  Way way;
  std::int64_t first_number;
  const std::uint8_t* skip;  // (m,) queries that need not be looked up, or null
};

// Where headers have so many probes on average they are swept bucket by bucket, and where their buckets
// are long from fewer on: these are then read in order. A table of 6 M rows under 16 bits took 212 ns a
// query of 100,000 so, and 378 probe by probe; with one probe for four headers it makes no difference.
constexpr std::size_t kLongBucket = 64;
constexpr std::size_t kSharedBucket = 2;
constexpr std::size_t kHeadersOfALongBucket = 2;  // a probe for each so many

Way way_of(const Table& table, std::size_t probes) {
  const std::size_t buckets = std::size_t{1} << table.header_bits;
  if (table.words != 1) return Way::kProbes;
  if (table.n >= kLongBucket * buckets)
    return kHeadersOfALongBucket * probes >= buckets ? Way::kLongBuckets : Way::kProbes;
  return probes >= kSharedBucket * buckets ? Way::kSharedBuckets : Way::kProbes;
}

// Before all rows of a partition are read.
void touch_partition(const Table& table, std::size_t partitions, std::size_t partition) {
  const std::size_t step = (std::size_t{1} << table.directory_bits) / partitions;
  const auto n = static_cast<std::uint32_t>(table.n);
  table.touch(std::min(table.directory[partition * step], n),
              std::min(table.directory[(partition + 1) * step], n));
}

// Flip masks of a header as entries: of each set of bits above the partition's, one, expanded by the
// sets of bits within the partition that go with it. Two tables of 10 M rows with one flipped bit of 20
// have 10 entries a query in place of 21 probes.
struct Entries {
  struct Flip {
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
  std::vector<Flip> entries;
};

namespace portable_level {
using namespace portable;
#define SIMINDEX_LEVEL_TARGET
#include "methods/probe/sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
using namespace avx2;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "methods/probe/sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
using namespace avx512;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/probe/sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level

namespace avx512_vpopcntdq_level {
using namespace avx512_vpopcntdq;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "methods/probe/sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_vpopcntdq_level
#endif

template <class Sink>
void sweep_at(const Table& table, const Search& search, const Part& part, int level, Sink& out,
              Counts& counts) {
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq)
    return avx512_vpopcntdq_level::sweep_any(table, search, part, out, counts);
  if (level >= kAvx512)
    return avx512_level::sweep_any(table, search, part, out, counts);
  if (level >= kAvx2)
    return avx2_level::sweep_any(table, search, part, out, counts);
#else
  (void)level;
#endif
  portable_level::sweep_any(table, search, part, out, counts);
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
    const Search part{search.queries + start * table.words, m, search.h};
    probes.clear();
    partition(start, m, probes);
    const Way way = entries_each == probes_each ? way_of(table, m * entries_each) : Way::kProbes;
    sweep_at(table, part,
             Part{probes, 0, probes.partitions(), way, static_cast<std::int64_t>(start), nullptr},
             level, out, counts);
    counts.probes += m * probes_each;
  }
}

}  // namespace

Partitioned::Partitioned(const Table& table, std::size_t entries, bool keep)
    : words(table.words), directory_bits(table.directory_bits), header_bits(table.header_bits),
      probes(table, simindex::partition_bits(table, kMaxPartitionBits), {{0}}, entries, keep) {
  probes.clear();
}

std::size_t Partitioned::partitions() const { return probes.partitions(); }

void partition_psm(const Chosen& chosen, const Vosh& plan, const float* weights, bool own, int level,
                   Partitioned& batch) {
  Partitioned::Adder add(batch);
  const VoshLanes lanes = vosh_lanes(level);
  VoshMemory memory(plan.candidate_count());
  const Memory<std::uint32_t> masks = allocate<std::uint32_t>(plan.flips * kLanes);
  const Memory<float> gathered =
      allocate<float>(chosen.numbers == nullptr ? 0 : kLanes * plan.bits);
  Pending pending;
  const std::size_t row_lines = plan.bits * sizeof(float) / kLineBytes;
  for (std::size_t first = 0; first < chosen.count; first += kLanes) {
    const std::size_t count = std::min(kLanes, chosen.count - first);
    // The next weights arrive while these are worked on.
    pending.clear();
    const std::size_t ahead = std::min(chosen.count, first + 2 * kLanes);
    for (std::size_t i = first + kLanes; i < ahead && row_lines <= kMostRowLines; ++i) {
      const auto row = reinterpret_cast<std::uintptr_t>(weights + chosen.number(i) * plan.bits);
      for (std::size_t line = 0; line < row_lines; ++line) pending.add(row + line * kLineBytes);
    }
    const float* some = weights + first * plan.bits;
    if (chosen.numbers != nullptr) {
      for (std::size_t lane = 0; lane < count; ++lane)
        std::copy_n(weights + chosen.number(first + lane) * plan.bits, plan.bits,
                    gathered.get() + lane * plan.bits);
      some = gathered.get();
    }
    lanes(plan, some, count, memory, masks.get(), pending);
    pending.all();
    std::uint64_t word[kLanes];
    std::uint32_t upper[kLanes] = {};
    std::uint32_t number[kLanes];
    std::uint32_t place[kLanes];
    for (std::size_t lane = 0; lane < count; ++lane) {
      number[lane] = chosen.number(first + lane);
      word[lane] = chosen.queries[number[lane] * batch.words];
      upper[lane] = static_cast<std::uint32_t>(word[lane] >> 32);
      place[lane] = add.place(upper[lane]);
    }
    if (own) add(word, place, number, count);
    for (std::size_t flip = 0; flip < plan.flips; ++flip) {
      const std::uint32_t* mask = masks.get() + flip * kLanes;
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        place[lane] = add.place(upper[lane] ^ mask[lane]);
      add(word, place, number, count);
    }
  }
  batch.finish(chosen.count * ((own ? 1 : 0) + plan.flips));
}

void partition_headers(const Chosen& chosen, Partitioned& batch) {
  Partitioned::Adder add(batch);
  std::uint64_t word[kGroup];
  std::uint32_t place[kGroup];
  std::uint32_t number[kGroup];
  for (std::size_t first = 0; first < chosen.count; first += kGroup) {
    const std::size_t count = std::min<std::size_t>(kGroup, chosen.count - first);
    for (std::size_t i = 0; i < count; ++i) {
      number[i] = chosen.number(first + i);
      word[i] = chosen.queries[number[i] * batch.words];
      place[i] = add.place(static_cast<std::uint32_t>(word[i] >> 32));
    }
    add(word, place, number, count);
  }
  batch.finish(chosen.count);
}

Found sweep_partitioned(const Table& table, const Search& search, const Partitioned& batch,
                        std::size_t begin, std::size_t end, const std::uint8_t* skip, int level) {
  Found found{search};
  if (table.n == 0 || search.m == 0) return found;
  for (std::size_t partition = begin; partition < end; ++partition)
    found.probes += batch.probes.count(partition, 0);
  const Part part{batch.probes, begin, end, way_of(table, batch.size), 0, skip};
  sweep_at(table, search, part, level, found.matches, found);
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
  const bool apart = k == 1 || way_of(table, search.m * k) != Way::kProbes;
  const Entries plan(table, {flips, k}, apart ? table.header_bits : bits);
  const int right = 64 - table.header_bits;
  const int left = table.directory_bits - table.header_bits;
  sweep_parts(table, search, bits, plan.expansions, plan.entries.size(), k, level, out, counts,
              [&](std::size_t start, std::size_t m, Probes& probes) {
                for (std::size_t query = 0; query < m; ++query) {
                  const std::uint64_t word = search.queries[(start + query) * table.words];
                  const auto place = static_cast<std::uint32_t>(word >> right << left);
                  for (const Entries::Flip& entry : plan.entries)
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
