#include "methods/probe/probe.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "methods/probe/bucket.hpp"
#include "methods/probe/hits.hpp"

namespace simindex {
namespace {

class Headers {
 public:
  explicit Headers(const Table& table)
      : header_shift_(64 - table.header_bits),
        directory_shift_(table.directory_bits - table.header_bits),
        none_(table.header_bits == 0) {}

  // Place in the directory where the bucket of `word` begins; below 2^directory_bits.
  std::uint32_t operator()(std::uint64_t word) const {
    return none_ ? 0 : static_cast<std::uint32_t>((word >> header_shift_) << directory_shift_);
  }

 private:
  int header_shift_;
  int directory_shift_;
  bool none_;
};

// Flip masks that the caller chose.
class GivenFlips {
 public:
  GivenFlips(const Table& table, const Search& search, const std::uint64_t* flips, std::size_t k,
             std::size_t stride)
      : header_(table), queries_(search.queries), words_(table.words), m_(search.m), flips_(flips),
        k_(k), stride_(stride) {}

  // Appends probes until the block is full; false once there are no more.
  bool fill(ProbeBlock& block, Pending&) {
    while (query_ < m_ && !block.full()) {
      const std::uint64_t word = queries_[query_ * words_];
      const std::uint64_t* flips = flips_ + query_ * stride_;
      const auto count = static_cast<std::uint32_t>(
          std::min<std::size_t>(k_ - flip_, ProbeBlock::kCapacity - block.slots));
      block.run[block.runs] = {query_, block.slots, count, 1};
      block.runs += count != 0;
      for (std::uint32_t i = 0; i < count; ++i)
        block.place[block.slots + i] = header_(word ^ flips[flip_ + i]);
      block.slots += count;
      flip_ += count;
      if (flip_ < k_) return true;
      flip_ = 0;
      ++query_;
    }
    return query_ < m_;
  }

 private:
  Headers header_;
  const std::uint64_t* queries_;
  std::size_t words_;
  std::size_t m_;
  const std::uint64_t* flips_;
  std::size_t k_;
  std::size_t stride_;
  std::size_t query_ = 0;
  std::size_t flip_ = 0;
};

// The own bucket and masks from the networks, made for 16 queries at a time. A block takes as many of
// the 16 as fit with all their probes (16, 8 or 4), probe by probe over the queries.
class NetworkedFlips {
 public:
  NetworkedFlips(const Table& table, const Search& search, const Vosh& plan, const float* weights,
                 int level)
      : table_(table), header_(table), search_(search), plan_(plan), weights_(weights),
        lanes_(vosh_lanes(level)), memory_(plan.candidate_count()),
        masks_(std::make_unique_for_overwrite<std::uint32_t[]>(plan.flips * kLanes)) {
    while (width_ * (plan.flips + 1) > ProbeBlock::kCapacity) width_ /= 2;
  }

  static bool fits(const Vosh& plan) {
    return plan.networked() && plan.flips > 0 && plan.flips < ProbeBlock::kCapacity;
  }

  bool fill(ProbeBlock& block, Pending& pending) {
    if (query_ == search_.m) return false;
    const std::size_t lane = query_ % kLanes;
    if (lane == 0)
      lanes_(plan_, weights_ + query_ * plan_.bits, std::min(kLanes, search_.m - query_),
             memory_, masks_.get(), pending);
    const std::size_t count = std::min(width_, search_.m - query_);
    std::uint32_t upper[kLanes];
    for (std::size_t i = 0; i < width_; ++i) {
      const std::size_t query = query_ + (i < count ? i : count - 1);
      const std::uint64_t word = search_.queries[query * table_.words];
      upper[i] = static_cast<std::uint32_t>(word >> 32);
      block.place[i] = header_(word);
    }
    // Networks exist for 1 .. 32 header bits, so a header is the top of the upper half word.
    const int right = 32 - table_.header_bits;
    const int left = table_.directory_bits - table_.header_bits;
    for (std::size_t flip = 0; flip < plan_.flips; ++flip) {
      const std::uint32_t* mask = masks_.get() + flip * kLanes + lane;
      std::uint32_t* place = block.place + (flip + 1) * width_;
      for (std::size_t i = 0; i < width_; ++i) place[i] = (upper[i] ^ mask[i]) >> right << left;
    }
    block.slots = static_cast<std::uint32_t>((plan_.flips + 1) * width_);
    for (std::uint32_t i = 0; i < count; ++i)
      block.run[i] = {query_ + i, i, static_cast<std::uint32_t>(plan_.flips + 1),
                      static_cast<std::uint32_t>(width_)};
    block.runs = static_cast<std::uint32_t>(count);
    query_ += count;
    return query_ < search_.m;
  }

 private:
  const Table& table_;
  Headers header_;
  const Search& search_;
  const Vosh& plan_;
  const float* weights_;
  VoshLanes lanes_;
  VoshMemory memory_;
  std::unique_ptr<std::uint32_t[]> masks_;  // (k, 16), upper halves
  std::size_t width_ = kLanes;              // queries of a block
  std::size_t query_ = 0;
};

// The own bucket and masks from the heap, query by query.
class HeapFlips {
 public:
  HeapFlips(const Table& table, const Search& search, const Vosh& plan, const float* weights)
      : header_(table), search_(search), words_(table.words), plan_(plan), weights_(weights),
        heap_(plan), masks_(plan.flips + 1) {}

  bool fill(ProbeBlock& block, Pending&) {
    while (query_ < search_.m && !block.full()) {
      if (flip_ == 0) heap_.masks(weights_ + query_ * plan_.bits, masks_.data() + 1);
      const std::uint64_t word = search_.queries[query_ * words_];
      const auto count = static_cast<std::uint32_t>(
          std::min<std::size_t>(masks_.size() - flip_, ProbeBlock::kCapacity - block.slots));
      block.run[block.runs++] = {query_, block.slots, count, 1};
      for (std::uint32_t i = 0; i < count; ++i)
        block.place[block.slots + i] = header_(word ^ masks_[flip_ + i]);
      block.slots += count;
      flip_ += count;
      if (flip_ < masks_.size()) return true;
      flip_ = 0;
      ++query_;
    }
    return query_ < search_.m;
  }

 private:
  Headers header_;
  const Search& search_;
  std::size_t words_;
  const Vosh& plan_;
  const float* weights_;
  VoshHeap heap_;
  std::vector<std::uint64_t> masks_;  // 0, then k masks
  std::size_t query_ = 0;
  std::size_t flip_ = 0;
};

namespace portable_level {
using namespace portable;
#define SIMINDEX_LEVEL_TARGET
#include "methods/probe/probe.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
using namespace avx2;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "methods/probe/probe.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
using namespace avx512;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/probe/probe.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level

namespace avx512_vpopcntdq_level {
using namespace avx512_vpopcntdq;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "methods/probe/probe.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_vpopcntdq_level
#endif

template <class Source, class Sink>
Counts run_at(const Table& table, const Search& search, Source& source, int level, Sink& out) {
  Counts counts;
  if (table.n == 0 || search.m == 0) return counts;
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq)
    avx512_vpopcntdq_level::run_any(table, search, source, out, counts);
  else if (level >= kAvx512)
    avx512_level::run_any(table, search, source, out, counts);
  else if (level >= kAvx2)
    avx2_level::run_any(table, search, source, out, counts);
  else
#endif
    portable_level::run_any(table, search, source, out, counts);
  (void)level;
  return counts;
}

template <class Source>
Found run_at(const Table& table, const Search& search, Source& source, int level) {
  Found found{search};
  static_cast<Counts&>(found) = run_at(table, search, source, level, found.matches);
  return found;
}

}  // namespace

Found probe(const Table& table, const Search& search, const std::uint64_t* flips, std::size_t k,
            std::size_t stride, int level) {
  GivenFlips source(table, search, flips, k, stride);
  return run_at(table, search, source, level);
}

template <class Sink>
Counts probe_into(const Table& table, const Search& search, const std::uint64_t* flips,
                  std::size_t k, int level, Sink& out) {
  GivenFlips source(table, search, flips, k, 0);
  return run_at(table, search, source, level, out);
}

template Counts probe_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           Matches&);
template Counts probe_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           Hits&);
template Counts probe_into(const Table&, const Search&, const std::uint64_t*, std::size_t, int,
                           FoundRows&);

Found psm(const Table& table, const Search& search, const Vosh& plan, const float* weights,
          int level) {
  if (NetworkedFlips::fits(plan)) {
    NetworkedFlips source(table, search, plan, weights, level);
    return run_at(table, search, source, level);
  }
  HeapFlips source(table, search, plan, weights);
  return run_at(table, search, source, level);
}

}  // namespace simindex
