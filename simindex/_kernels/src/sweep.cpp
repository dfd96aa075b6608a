#include "sweep.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "bucket.hpp"
#include "hits.hpp"
#include "intrinsics.hpp"
#include "memory.hpp"

namespace simindex {
namespace {

constexpr std::size_t kSliceBytes = std::size_t{256} << 10;
constexpr int kMaxPartitionBits = 11;  // their open groups, 512 KB, stay in the second-level cache
constexpr std::uint32_t kGroup = 16;
constexpr std::uint32_t kChunkGroups = 16;
constexpr std::uint32_t kChunk = kGroup * kChunkGroups;
constexpr std::uint32_t kNoChunk = ~std::uint32_t{0};
static_assert(kChunk <= ProbeBlock::kCapacity);

struct alignas(64) Group {
  std::uint64_t word[kGroup];    // word 0 of the query
  std::uint32_t place[kGroup];   // in the directory
  std::uint32_t number[kGroup];  // of the query, in its sub-batch
};
static_assert(sizeof(Group) == 256);

struct Chunk {
  Group group[kChunkGroups];
};

// The slice of a partition: the top bits of a place, as many as leave about kSliceBytes of rows.
int partition_bits(const Table& table) {
  const std::size_t slices = table.n * table.words * sizeof(std::uint64_t) / kSliceBytes;
  return std::min({static_cast<int>(std::bit_width(slices)), kMaxPartitionBits, table.header_bits});
}

// A full line at a time past the caches: what is written is not read before the next pass, and a
// plain store would first fetch the line it overwrites.
void write(Group* to, const Group* from) {
#if SIMINDEX_X86
  auto* out = reinterpret_cast<__m128i*>(to);
  const auto* in = reinterpret_cast<const __m128i*>(from);
  for (std::size_t i = 0; i < sizeof(Group) / sizeof(__m128i); ++i)
    _mm_stream_si128(out + i, _mm_load_si128(in + i));
#else
  std::memcpy(to, from, sizeof(Group));
#endif
}

// Memory for chunks, kept from call to call: new pages cost more than all else that is done to a probe
// (60 ns a query for pages of 2 MB, ten times that on a virtual machine that has not touched them).
// While kept, the system may take its pages back (MADV_FREE). A call that finds it in use by another
// thread allocates its own; of two the one given back last is kept.
struct ChunkMemory {
  explicit ChunkMemory(std::size_t chunks) : capacity(chunks), chunk(allocate<Chunk>(chunks)) {}

  static std::unique_ptr<ChunkMemory> take(std::size_t chunks) {
    std::unique_ptr<ChunkMemory> memory(kept.exchange(nullptr));
    if (memory == nullptr || memory->capacity < chunks) {
      memory.reset();
      memory = std::make_unique<ChunkMemory>(chunks);
    }
    return memory;
  }

  static void give(std::unique_ptr<ChunkMemory> memory) {
#if defined(__linux__) && defined(MADV_FREE)
    constexpr std::size_t kLargePage = std::size_t{2} << 20;
    const std::size_t bytes = memory->capacity * sizeof(Chunk);
    if (bytes >= 2 * kLargePage)
      madvise(memory->chunk.get(), bytes / kLargePage * kLargePage, MADV_FREE);
#endif
    delete kept.exchange(memory.release());
  }

  std::size_t capacity;
  Memory<Chunk> chunk;

 private:
  static inline std::atomic<ChunkMemory*> kept{nullptr};
};

// The probes of one sub-batch, by partition.
class Probes {
 public:
  Probes(const Table& table, std::size_t capacity)
      : shift_(table.directory_bits - partition_bits(table)),
        partitions_(std::size_t{1} << partition_bits(table)),
        chunks_(ChunkMemory::take(capacity / kChunk + partitions_ + 1)),
        next_(allocate<std::uint32_t>(capacity / kChunk + partitions_ + 1)),
        open_(allocate<Group>(partitions_ + 1)),
        count_(partitions_), head_(partitions_), last_(partitions_) {
    // allocate aligns large arrays only.
    groups_ = reinterpret_cast<Group*>(
        (reinterpret_cast<std::uintptr_t>(open_.get()) + 63) & ~std::uintptr_t{63});
    first_ = reinterpret_cast<Chunk*>(
        (reinterpret_cast<std::uintptr_t>(chunks_->chunk.get()) + 63) & ~std::uintptr_t{63});
  }

  ~Probes() { ChunkMemory::give(std::move(chunks_)); }
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  void clear() {
    std::fill(count_.begin(), count_.end(), 0);
    std::fill(head_.begin(), head_.end(), kNoChunk);
    used_ = 0;
  }

  SIMINDEX_INLINE void add(std::uint64_t word, std::uint32_t place, std::uint32_t number) {
    const std::uint32_t partition = place >> shift_;
    Group& group = groups_[partition];
    const std::uint32_t at = count_[partition]++;
    const std::uint32_t slot = at % kGroup;
    group.word[slot] = word;
    group.place[slot] = place;
    group.number[slot] = number;
    if (slot == kGroup - 1) close(partition, at);
  }

  // Writes the groups that are not full.
  void finish() {
    for (std::uint32_t partition = 0; partition < partitions_; ++partition)
      if (count_[partition] % kGroup != 0) close(partition, count_[partition] - 1);
#if SIMINDEX_X86
    _mm_sfence();
#endif
  }

  std::size_t size() const { return std::accumulate(count_.begin(), count_.end(), std::size_t{0}); }
  std::size_t partitions() const { return partitions_; }
  std::uint32_t count(std::size_t partition) const { return count_[partition]; }
  std::uint32_t head(std::size_t partition) const { return head_[partition]; }
  std::uint32_t next(std::uint32_t chunk) const { return next_[chunk]; }
  const Chunk* chunk(std::uint32_t chunk) const { return first_ + chunk; }

 private:
  // Writes the open group whose last probe is number `at` of the partition.
  [[gnu::noinline]] void close(std::uint32_t partition, std::uint32_t at) {
    const std::uint32_t group = at / kGroup % kChunkGroups;
    if (group == 0) {
      const std::uint32_t fresh = used_++;
      if (at < kGroup)
        head_[partition] = fresh;
      else
        next_[last_[partition]] = fresh;
      last_[partition] = fresh;
      next_[fresh] = kNoChunk;
    }
    write(&first_[last_[partition]].group[group], groups_ + partition);
  }

  int shift_;
  std::size_t partitions_;
  std::unique_ptr<ChunkMemory> chunks_;
  Memory<std::uint32_t> next_;
  Memory<Group> open_;
  std::vector<std::uint32_t> count_;  // probes of a partition
  std::vector<std::uint32_t> head_;   // its first chunk
  std::vector<std::uint32_t> last_;   // its last chunk
  Group* groups_ = nullptr;
  Chunk* first_ = nullptr;
  std::uint32_t used_ = 0;
};

// All chunks, partition by partition.
class Walk {
 public:
  explicit Walk(const Probes& probes) : probes_(probes) {}

  // The next chunk and how many probes it holds; null behind the last.
  const Chunk* next(std::uint32_t& slots) {
    while (left_ == 0) {
      if (partition_ == probes_.partitions()) return nullptr;
      left_ = probes_.count(partition_);
      chunk_ = probes_.head(partition_);
      ++partition_;
    }
    const Chunk* chunk = probes_.chunk(chunk_);
    slots = std::min(left_, kChunk);
    left_ -= slots;
    chunk_ = probes_.next(chunk_);
    return chunk;
  }

 private:
  const Probes& probes_;
  std::size_t partition_ = 0;
  std::uint32_t left_ = 0;
  std::uint32_t chunk_ = kNoChunk;
};

constexpr std::uint32_t kPieceProbes = 4096;
constexpr std::uint32_t kSlabRows = 2048;   // stay in the first-level cache
constexpr std::uint32_t kAheadRows = 512;   // two long buckets

// Buckets of so many rows, and so many probes for each, are swept bucket by bucket.
constexpr std::size_t kLongBucket = 24;
constexpr std::size_t kSharedBucket = 2;

// Probes of one partition in the order of their buckets, as many at a time as stay in the caches.
class Piece {
 public:
  struct Probe {
    std::uint64_t word;
    std::uint32_t number;
  };

  Piece(const Table& table, std::size_t partitions)
      : right_(table.directory_bits - table.header_bits),
        bits_(table.header_bits - (std::bit_width(partitions) - 1)),
        buckets_(std::uint32_t{1} << bits_), ends_(buckets_ + 1), sorted_(kPieceProbes) {}

  // Takes the next probes of a partition; false once it has no more. Partitions come in order.
  bool fill(const Probes& probes, std::size_t partition) {
    if (partition != partition_) {
      partition_ = partition;
      left_ = probes.count(partition);
      chunk_ = probes.head(partition);
    }
    if (left_ == 0) return false;
    std::fill(ends_.begin(), ends_.end(), 0);
    const Chunk* some[kPieceProbes / kChunk];
    std::uint32_t slots[kPieceProbes / kChunk];
    std::uint32_t chunks = 0;
    for (; chunks < kPieceProbes / kChunk && left_ != 0; ++chunks) {
      some[chunks] = probes.chunk(chunk_);
      slots[chunks] = std::min(left_, kChunk);
      left_ -= slots[chunks];
      chunk_ = probes.next(chunk_);
    }
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const Chunk* next = i + 1 < chunks ? some[i + 1] : some[i];
      for (std::uint32_t slot = 0; slot < slots[i]; ++slot) {
        if (slot % 4 == 0)
          __builtin_prefetch(reinterpret_cast<const char*>(next) + slot * sizeof(Probe), 0, 2);
        ++ends_[bucket_of(some[i]->group[slot / kGroup].place[slot % kGroup]) + 1];
      }
    }
    for (std::uint32_t bucket = 0; bucket < buckets_; ++bucket) ends_[bucket + 1] += ends_[bucket];
    // Each bucket's start moves to its end.
    for (std::uint32_t i = 0; i < chunks; ++i)
      for (std::uint32_t slot = 0; slot < slots[i]; ++slot) {
        const Group& group = some[i]->group[slot / kGroup];
        Probe& to = sorted_[ends_[bucket_of(group.place[slot % kGroup])]++];
        to.word = group.word[slot % kGroup];
        to.number = group.number[slot % kGroup];
      }
    return true;
  }

  std::uint32_t buckets() const { return buckets_; }

  // In the directory.
  std::size_t place(std::size_t partition, std::uint32_t bucket) const {
    return (partition << bits_ | bucket) << right_;
  }

  std::span<const Probe> of(std::uint32_t bucket) const {
    const std::uint32_t start = bucket == 0 ? 0 : ends_[bucket - 1];
    return {sorted_.data() + start, ends_[bucket] - start};
  }

 private:
  std::uint32_t bucket_of(std::uint32_t place) const { return (place >> right_) & (buckets_ - 1); }

  int right_;
  int bits_;
  std::uint32_t buckets_;
  std::vector<std::uint32_t> ends_;
  std::vector<Probe> sorted_;
  std::size_t partition_ = ~std::size_t{0};
  std::uint32_t left_ = 0;
  std::uint32_t chunk_ = kNoChunk;
};

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

bool by_bucket(const Table& table, const Probes& probes) {
  const std::size_t buckets = std::size_t{1} << table.header_bits;
  return table.n >= kLongBucket * buckets && probes.size() >= kSharedBucket * buckets;
}

namespace portable_level {
using portable::kSieves;
using portable::locate;
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
using avx512_vpopcntdq::look_long;
using avx512_vpopcntdq::look_soon;
using avx512_vpopcntdq::settle;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "sweep.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_vpopcntdq_level
#endif

template <class Sink>
void sweep_at(const Table& table, const Search& search, const Probes& probes,
              std::int64_t first_number, int level, Sink& out, Counts& counts) {
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq)
    return avx512_vpopcntdq_level::sweep_any(table, search, probes, first_number, out, counts);
  if (level >= kAvx512)
    return avx512_level::sweep_any(table, search, probes, first_number, out, counts);
  if (level >= kAvx2)
    return avx2_level::sweep_any(table, search, probes, first_number, out, counts);
#else
  (void)level;
#endif
  portable_level::sweep_any(table, search, probes, first_number, out, counts);
}

// Cuts a batch into sub-batches of bounded memory; `partition` fills in the probes of one.
template <class Sink, class Partition>
Counts sweep_parts(const Table& table, const Search& search, std::size_t probes_each, int level,
                   Sink& out, const Partition& partition) {
  Counts counts;
  if (table.n == 0 || search.m == 0) return counts;
  const std::size_t most = std::max(kLanes, kProbeBytes / (sizeof(Group) / kGroup) / probes_each);
  const std::size_t parts = (search.m + most - 1) / most;
  const std::size_t size = (search.m + parts - 1) / parts;
  Probes probes(table, size * probes_each);
  for (std::size_t start = 0; start < search.m; start += size) {
    const std::size_t m = std::min(size, search.m - start);
    const Search part{search.queries + start * table.words, m, search.h, false};
    probes.clear();
    partition(start, m, probes);
    sweep_at(table, part, probes, static_cast<std::int64_t>(start), level, out, counts);
    counts.probes += m * probes_each;
  }
  return counts;
}

}  // namespace

Found psm_swept(const Table& table, const Search& search, const Vosh& plan, const float* weights,
                int level) {
  // Networks exist for 1 .. 32 header bits, so a header is the top of the upper half word.
  if (search.first || !plan.networked() || plan.flips == 0 || table.header_bits == 0)
    return psm(table, search, plan, weights, level);
  Partitioner partitioner(table, plan, level);
  Found found;
  static_cast<Counts&>(found) =
      sweep_parts(table, search, plan.flips + 1, level, found.matches,
                  [&](std::size_t start, std::size_t m, Probes& probes) {
                    partitioner.run(search.queries + start * table.words,
                                    weights + start * plan.bits, m, probes);
                  });
  return found;
}

template <class Sink>
Counts swept_into(const Table& table, const Search& search, const std::uint64_t* flips,
                  std::size_t k, int level, Sink& out) {
  if (search.first || k == 0 || table.header_bits == 0)
    return probe_into(table, search, flips, k, level, out);
  const int right = 64 - table.header_bits;
  const int left = table.directory_bits - table.header_bits;
  return sweep_parts(
      table, search, k, level, out, [&](std::size_t start, std::size_t m, Probes& probes) {
        for (std::size_t query = 0; query < m; ++query) {
          const std::uint64_t word = search.queries[(start + query) * table.words];
          for (std::size_t flip = 0; flip < k; ++flip)
            probes.add(word, static_cast<std::uint32_t>((word ^ flips[flip]) >> right << left),
                       static_cast<std::uint32_t>(query));
        }
        probes.finish();
      });
}

template Counts swept_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           Matches&);
template Counts swept_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           Hits&);
template Counts swept_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           FoundRows&);

}  // namespace simindex
