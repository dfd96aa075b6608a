// Probes by partition and by bucket, in bounded memory; see sweep.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cpu/intrinsics.hpp"
#include "cpu/memory.hpp"
#include "methods/probe/bucket.hpp"
#include "methods/probe/probe.hpp"

namespace simindex {

inline constexpr std::size_t kSliceBytes = std::size_t{256} << 10;
inline constexpr int kMaxPartitionBits = 11;  // their open groups, 512 KB, stay in the second-level cache
inline constexpr int kKindBits = 1;           // ... of two kinds of entries; four take 1 MB
inline constexpr std::uint32_t kGroup = 16;
inline constexpr std::uint32_t kChunkGroups = 16;
inline constexpr std::uint32_t kChunk = kGroup * kChunkGroups;
inline constexpr std::uint32_t kNoChunk = ~std::uint32_t{0};
static_assert(kChunk <= ProbeBlock::kCapacity);

// Its parts stand together, so that writing it touches one line.
struct Entry {
  std::uint64_t word;    // word 0 of the query
  std::uint32_t place;   // in the directory
  std::uint32_t number;  // of the query, in its sub-batch
};

struct alignas(64) Group {
  Entry entry[kGroup];
};
static_assert(sizeof(Group) == 256);

struct Chunk {
  Group group[kChunkGroups];
};

// The slice of a partition: the top bits of a place, as many as leave about kSliceBytes of rows.
inline int partition_bits(const Table& table, int most) {
  const std::size_t slices = table.n * table.words * sizeof(std::uint64_t) / kSliceBytes;
  return std::min({static_cast<int>(std::bit_width(slices)), most, table.header_bits});
}

// Full lines past the caches: what is written is not read before the next pass, and a
// plain store would first fetch the line it overwrites.
inline void write(Group* to, const Group* from) {
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
// While kept, the system may take its pages back (MADV_FREE). As many are kept as threads sweep at a
// time; a call that finds none allocates its own, and what finds no place is freed.
struct ChunkMemory {
  explicit ChunkMemory(std::size_t chunks) : capacity(chunks), chunk(allocate<Chunk>(chunks)) {}

  static std::unique_ptr<ChunkMemory> take(std::size_t chunks) {
    for (auto& place : kept) {
      std::unique_ptr<ChunkMemory> memory(place.exchange(nullptr));
      if (memory != nullptr && memory->capacity >= chunks) return memory;
    }
    return std::make_unique<ChunkMemory>(chunks);
  }

  static void give(std::unique_ptr<ChunkMemory> memory) {
#if defined(__linux__) && defined(MADV_FREE)
    constexpr std::size_t kLargePage = std::size_t{2} << 20;
    const std::size_t bytes = memory->capacity * sizeof(Chunk);
    if (bytes >= 2 * kLargePage)
      madvise(memory->chunk.get(), bytes / kLargePage * kLargePage, MADV_FREE);
#endif
    for (auto& place : kept) {
      ChunkMemory* none = nullptr;
      if (place.compare_exchange_strong(none, memory.get())) {
        memory.release();
        return;
      }
    }
  }

  std::size_t capacity;
  Memory<Chunk> chunk;

 private:
  static constexpr std::size_t kKept = 4;
  static inline std::array<std::atomic<ChunkMemory*>, kKept> kept{};
};

// The probes of one sub-batch, by partition.
//
// What is stored of a query and a partition is an entry; it stands for a probe of each place that an
// expansion makes of its own by flipping bits within the partition. Entries of the same expansion are
// kept together. Expansion 0 flips nothing.
class Probes {
 public:
  using Expansions = std::vector<std::vector<std::uint32_t>>;  // masks of places

  // Memory is kept for later calls unless `keep` is false.
  Probes(const Table& table, int partition_bits, Expansions expansions, std::size_t entries,
         bool keep = true)
      : keep_(keep), shift_(table.directory_bits - partition_bits),
        kind_bits_(std::bit_width(expansions.size() - 1)),
        partitions_(std::size_t{1} << partition_bits),
        queues_(partitions_ << kind_bits_),
        expansions_(std::move(expansions)),
        most_chunks_(entries / kChunk + queues_ + partitions_ * (left_over() / kChunk + 1)),
        chunks_(keep ? ChunkMemory::take(most_chunks_ + 1)
                     : std::make_unique<ChunkMemory>(most_chunks_ + 1)),
        next_(allocate<std::uint32_t>(most_chunks_ + 1)),
        open_(allocate<Group>(queues_ + 1)),
        count_(queues_), head_(queues_), last_(queues_) {
    // allocate aligns large arrays only.
    groups_ = reinterpret_cast<Group*>(
        (reinterpret_cast<std::uintptr_t>(open_.get()) + 63) & ~std::uintptr_t{63});
    first_ = reinterpret_cast<Chunk*>(
        (reinterpret_cast<std::uintptr_t>(chunks_->chunk.get()) + 63) & ~std::uintptr_t{63});
  }

  ~Probes() {
    if (keep_) ChunkMemory::give(std::move(chunks_));
  }
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  void clear() {
    std::fill(count_.begin(), count_.end(), 0);
    std::fill(head_.begin(), head_.end(), kNoChunk);
    used_ = 0;
  }

  SIMINDEX_INLINE void add(std::uint64_t word, std::uint32_t place, std::uint32_t number,
                           std::uint32_t kind = 0) {
    const std::uint32_t queue = place >> shift_ << kind_bits_ | kind;
    Group& group = groups_[queue];
    const std::uint32_t at = count_[queue]++;
    const std::uint32_t slot = at % kGroup;
    group.entry[slot] = {word, place, number};
    if (slot == kGroup - 1) close(queue, at);
  }

  // The same for as many entries of kind 0 as a group holds, in columns: an entry put together in
  // memory and then moved as a whole would wait for its parts to be stored.
  SIMINDEX_INLINE void add_all(const std::uint64_t* word, const std::uint32_t* place,
                               const std::uint32_t* number) {
    std::uint32_t queue[kGroup];
    for (std::uint32_t i = 0; i < kGroup; ++i) queue[i] = place[i] >> shift_ << kind_bits_;
    std::uint32_t* const count = count_.data();  // locals: a store might otherwise change any member
    Group* const groups = groups_;
    for (std::uint32_t i = 0; i < kGroup; ++i) {
      const std::uint32_t at = count[queue[i]]++;
      const std::uint32_t slot = at % kGroup;
      Entry& entry = groups[queue[i]].entry[slot];
      entry.word = word[i];
      entry.place = place[i];
      entry.number = number[i];
      if (slot == kGroup - 1) close(queue[i], at);
    }
  }

  // Writes the groups that are not full; their expanded entries become probes one by one.
  void finish() {
    for (std::uint32_t partition = 0; partition < partitions_; ++partition) {
      for (std::uint32_t kind = 1; kind < expansions_.size(); ++kind) {
        const std::uint32_t queue = partition << kind_bits_ | kind;
        const Group& group = groups_[queue];
        const std::uint32_t left = count_[queue] % kGroup;
        for (std::uint32_t slot = 0; slot < left; ++slot)
          for (const std::uint32_t mask : expansions_[kind])
            add(group.entry[slot].word, group.entry[slot].place ^ mask, group.entry[slot].number);
        count_[queue] -= left;
      }
      const std::uint32_t queue = partition << kind_bits_;
      if (count_[queue] % kGroup != 0) close(queue, count_[queue] - 1);
    }
#if SIMINDEX_X86
    _mm_sfence();
#endif
  }

  std::size_t partitions() const { return partitions_; }
  const Expansions& expansions() const { return expansions_; }
  // Of a partition's entries of one kind: how many there are, and their first chunk.
  std::uint32_t count(std::size_t partition, std::size_t kind) const {
    return count_[partition << kind_bits_ | kind];
  }
  std::uint32_t head(std::size_t partition, std::size_t kind) const {
    return head_[partition << kind_bits_ | kind];
  }
  std::uint32_t next(std::uint32_t chunk) const { return next_[chunk]; }
  const Chunk* chunk(std::uint32_t chunk) const { return first_ + chunk; }

 private:
  // Probes that `finish` may make of a partition's open groups.
  std::size_t left_over() const {
    std::size_t most = 0;
    for (std::size_t kind = 1; kind < expansions_.size(); ++kind)
      most += (kGroup - 1) * expansions_[kind].size();
    return most;
  }

  // Writes the open group whose last entry is number `at` of the queue.
  [[gnu::noinline]] void close(std::uint32_t queue, std::uint32_t at) {
    const std::uint32_t group = at / kGroup % kChunkGroups;
    if (group == 0) {
      const std::uint32_t fresh = used_++;
      if (at < kGroup)
        head_[queue] = fresh;
      else
        next_[last_[queue]] = fresh;
      last_[queue] = fresh;
      next_[fresh] = kNoChunk;
    }
    write(&first_[last_[queue]].group[group], groups_ + queue);
  }

  bool keep_;
  int shift_;
  int kind_bits_;
  std::size_t partitions_;
  std::size_t queues_;
  Expansions expansions_;
  std::size_t most_chunks_;
  std::unique_ptr<ChunkMemory> chunks_;
  Memory<std::uint32_t> next_;
  Memory<Group> open_;
  std::vector<std::uint32_t> count_;  // entries of a queue
  std::vector<std::uint32_t> head_;   // its first chunk
  std::vector<std::uint32_t> last_;   // its last chunk
  Group* groups_ = nullptr;
  Chunk* first_ = nullptr;
  std::uint32_t used_ = 0;
};

// Probes that are looked at together: groups, each with the flips that its places are to get.
struct ProbeGroups {
  static constexpr std::uint32_t kMost = 16;
  static_assert(kMost * kGroup <= ProbeBlock::kCapacity);

  std::uint32_t groups = 0;
  std::uint32_t slots = 0;
  const Group* group[kMost];
  std::uint32_t flip[kMost];
};

// The probes of some partitions, one partition after the other.
class Walk {
 public:
  Walk(const Probes& probes, std::size_t begin, std::size_t end)
      : probes_(probes), partition_(begin), end_(end), kind_(kinds()) {}

  // The next probes; none behind the last. Only the last group of kind 0 of a partition may not be
  // full, and ends what is taken together.
  void next(ProbeGroups& some) {
    some.groups = some.slots = 0;
    while (some.groups < ProbeGroups::kMost) {
      if (left_ == 0 && !next_queue()) return;
      const std::vector<std::uint32_t>& flips = probes_.expansions()[kind_];
      some.group[some.groups] = probes_.chunk(chunk_)->group + group_;
      some.flip[some.groups++] = flips[flip_];
      const std::uint32_t lanes = std::min(left_, kGroup);
      some.slots += lanes;
      if (++flip_ == flips.size()) {
        flip_ = 0;
        left_ -= lanes;
        if (++group_ == kChunkGroups && left_ != 0) {
          group_ = 0;
          chunk_ = probes_.next(chunk_);
        }
      }
      if (lanes != kGroup) return;
    }
  }

 private:
  std::size_t kinds() const { return probes_.expansions().size(); }

  bool next_queue() {
    while (left_ == 0) {
      if (kind_ == kinds()) {
        if (partition_ == end_) return false;
        kind_ = 0;
      } else if (++kind_ == kinds()) {
        ++partition_;
        continue;
      }
      left_ = probes_.count(partition_, kind_);
      chunk_ = probes_.head(partition_, kind_);
      group_ = 0;
    }
    return true;
  }

  const Probes& probes_;
  std::size_t partition_;
  std::size_t end_;
  std::size_t kind_;
  std::uint32_t left_ = 0;
  std::uint32_t chunk_ = kNoChunk;
  std::uint32_t group_ = 0;
  std::size_t flip_ = 0;
};

// Probes of one partition, none of them expanded, in the order of their buckets, as many at a time as
// stay in the first-level cache, or in the second.
inline constexpr std::uint32_t kPieceProbes = 4096;
inline constexpr std::uint32_t kLargePieceProbes = 32768;
class Piece {
 public:
  struct Probe {
    std::uint64_t word;
    std::uint32_t number;
  };

  Piece(const Table& table, std::size_t partitions, std::uint32_t most)
      : most_chunks_(most / kChunk), right_(table.directory_bits - table.header_bits),
        bits_(table.header_bits - (std::bit_width(partitions) - 1)),
        buckets_(std::uint32_t{1} << bits_), ends_(buckets_ + 1), sorted_(most) {}

  // Takes the next probes of a partition; false once it has no more. Partitions come in order.
  bool fill(const Probes& probes, std::size_t partition) {
    if (partition != partition_) {
      partition_ = partition;
      left_ = probes.count(partition, 0);
      chunk_ = probes.head(partition, 0);
    }
    if (left_ == 0) return false;
    std::fill(ends_.begin(), ends_.end(), 0);
    const Chunk* some[kLargePieceProbes / kChunk];
    std::uint32_t slots[kLargePieceProbes / kChunk];
    std::uint32_t chunks = 0;
    for (; chunks < most_chunks_ && left_ != 0; ++chunks) {
      some[chunks] = probes.chunk(chunk_);
      slots[chunks] = std::min(left_, kChunk);
      left_ -= slots[chunks];
      chunk_ = probes.next(chunk_);
    }
    // A shift by a number that is known takes a third of the operations: 4 of 170 ns a query.
    switch (right_) {
      case 0: put_in_order<0>(some, slots, chunks); break;
      case 1: put_in_order<1>(some, slots, chunks); break;
      case 2: put_in_order<2>(some, slots, chunks); break;
      case 3: put_in_order<3>(some, slots, chunks); break;
      default: put_in_order<-1>(some, slots, chunks);
    }
    return true;
  }

  std::uint32_t buckets() const { return buckets_; }

  // In the directory.
  std::size_t place(std::size_t partition, std::uint32_t bucket) const {
    return (partition << bits_ | bucket) << right_;
  }

  // Number of its first probe.
  std::uint32_t start(std::uint32_t bucket) const { return bucket == 0 ? 0 : ends_[bucket - 1]; }

  std::span<const Probe> of(std::uint32_t bucket) const {
    return {sorted_.data() + start(bucket), ends_[bucket] - start(bucket)};
  }

  const Probe& probe(std::uint32_t number) const { return sorted_[number]; }

 private:
  template <int kRight>
  void put_in_order(const Chunk* const* some, const std::uint32_t* slots, std::uint32_t chunks) {
    // Locals: a store to one array might otherwise change any member.
    const int right = kRight < 0 ? right_ : kRight;
    const std::uint32_t last = buckets_ - 1;
    std::uint32_t* ends = ends_.data();
    for (std::uint32_t i = 0; i < chunks; ++i) {
      const Chunk* next = some[i + 1 < chunks ? i + 1 : i];
      for (std::uint32_t slot = 0; slot < slots[i]; slot += kGroup) {
        const Group& group = some[i]->group[slot / kGroup];
        const auto* ahead = reinterpret_cast<const char*>(&next->group[slot / kGroup]);
        for (std::size_t line = 0; line < sizeof(Group); line += 64)
          __builtin_prefetch(ahead + line, 0, 2);
        const std::uint32_t lanes = std::min(kGroup, slots[i] - slot);
        for (std::uint32_t lane = 0; lane < lanes; ++lane)
          ++ends[((group.entry[lane].place >> right) & last) + 1];
      }
    }
    for (std::uint32_t bucket = 0; bucket <= last; ++bucket) ends[bucket + 1] += ends[bucket];
    // Each bucket's start moves to its end.
    Probe* sorted = sorted_.data();
    for (std::uint32_t i = 0; i < chunks; ++i)
      for (std::uint32_t slot = 0; slot < slots[i]; slot += kGroup) {
        const Group& group = some[i]->group[slot / kGroup];
        const std::uint32_t lanes = std::min(kGroup, slots[i] - slot);
        for (std::uint32_t lane = 0; lane < lanes; ++lane)
          sorted[ends[(group.entry[lane].place >> right) & last]++] = {group.entry[lane].word,
                                                                       group.entry[lane].number};
      }
  }

  std::uint32_t most_chunks_;
  int right_;
  int bits_;
  std::uint32_t buckets_;
  std::vector<std::uint32_t> ends_;
  std::vector<Probe> sorted_;
  std::size_t partition_ = ~std::size_t{0};
  std::uint32_t left_ = 0;
  std::uint32_t chunk_ = kNoChunk;
};

}  // namespace simindex
