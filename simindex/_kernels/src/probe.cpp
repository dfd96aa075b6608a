#include "probe.hpp"

#include <algorithm>
#include <memory>

#include "compare.hpp"

namespace simindex {
namespace {

// Probes of consecutive queries, those of one query side by side.
struct ProbeBlock {
  static constexpr std::uint32_t kCapacity = 272;  // 16 queries with 16 flips

  struct Run {
    std::size_t query;
    std::uint32_t end;  // its probes end before this one
  };

  void clear() { count = runs = 0; }
  bool full() const { return count == kCapacity; }
  void open(std::size_t query) { run[runs] = {query, count}; }
  void close() {
    if (count != run[runs].end) run[runs++].end = count;
  }

  std::uint32_t count = 0;
  std::uint32_t runs = 0;
  std::uint32_t lo[kCapacity];  // first the place in the directory, then the first row
  std::uint32_t hi[kCapacity];
  Run run[kCapacity + 1];
};

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

// Replaces places in the directory by rows, and asks for up to three lines of each bucket; a longer
// bucket is read in order, which the hardware foresees.
SIMINDEX_INLINE void find_rows(const Table& table, ProbeBlock& block, Pending& pending) {
  static_assert(Pending::kCapacity > 3 * ProbeBlock::kCapacity);
  pending.clear();
  const auto n = static_cast<std::uint32_t>(table.n);
  const std::size_t step = std::size_t{1} << (table.directory_bits - table.header_bits);
  const std::size_t row_bytes = table.words * sizeof(std::uint64_t);
  const auto base = reinterpret_cast<std::uintptr_t>(table.rows);
  for (std::uint32_t i = 0; i < block.count; ++i) {
    const std::size_t place = block.lo[i];
    const std::uint32_t lo = std::min(table.directory[place], n);
    const std::uint32_t hi = std::max(lo, std::min(table.directory[place + step], n));
    block.lo[i] = lo;
    block.hi[i] = hi;
    const auto begin = base + lo * row_bytes;
    const auto last = base + hi * row_bytes - 1;
    pending.add(begin, hi > lo);
    pending.add(begin + 64, begin / 64 < last / 64);
    pending.add(begin + 128, begin / 64 + 1 < last / 64);
  }
}

// Flip masks that the caller chose.
class GivenFlips {
 public:
  GivenFlips(const Table& table, const Search& search, const std::uint64_t* flips, std::size_t k,
             std::size_t stride)
      : header_(table), queries_(search.queries), words_(table.words), m_(search.m), flips_(flips),
        k_(k), stride_(stride) {}

  // Appends probes until the block is full; false once there are no more.
  bool fill(ProbeBlock& block, Pending&) {
    while (query_ < m_) {
      const std::uint64_t word = queries_[query_ * words_];
      const std::uint64_t* flips = flips_ + query_ * stride_;
      block.open(query_);
      while (flip_ < k_ && !block.full()) block.lo[block.count++] = header_(word ^ flips[flip_++]);
      block.close();
      if (flip_ < k_) return true;
      flip_ = 0;
      ++query_;
    }
    return false;
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

// Flip masks from VOSH, 16 queries at a time, or one where the heap makes them.
class LikelyFlips {
 public:
  LikelyFlips(const Table& table, const Search& search, const Vosh& plan, const float* weights,
              int level)
      : header_(table), queries_(search.queries), words_(table.words), m_(search.m), plan_(plan),
        weights_(weights), k_(plan.flips), lanes_(vosh_lanes(level)), heap_(plan) {
    if (k_ == 0) return;
    if (plan.networked())
      lane_masks_ = std::make_unique_for_overwrite<std::uint32_t[]>(k_ * kLanes);
    else
      masks_ = std::make_unique_for_overwrite<std::uint64_t[]>(k_);
  }

  bool fill(ProbeBlock& block, Pending& pending) {
    while (query_ < m_) {
      if (query_ == made_) make(pending);
      const std::uint64_t word = queries_[query_ * words_];
      block.open(query_);
      if (flip_ == 0 && !block.full()) {
        block.lo[block.count++] = header_(word);
        ++flip_;
      }
      if (plan_.networked()) {
        const std::uint32_t* mask = lane_masks_.get() + query_ % kLanes;
        for (; flip_ != 0 && flip_ <= k_ && !block.full(); ++flip_)
          block.lo[block.count++] =
              header_(word ^ static_cast<std::uint64_t>(mask[(flip_ - 1) * kLanes]) << 32);
      } else {
        for (; flip_ != 0 && flip_ <= k_ && !block.full(); ++flip_)
          block.lo[block.count++] = header_(word ^ masks_[flip_ - 1]);
      }
      block.close();
      if (flip_ <= k_) return true;
      flip_ = 0;
      ++query_;
    }
    return false;
  }

 private:
  void make(Pending& pending) {
    const std::size_t count = plan_.networked() ? std::min(kLanes, m_ - query_) : 1;
    if (k_ != 0) {
      const float* weights = weights_ + query_ * plan_.bits;
      if (plan_.networked())
        lanes_(plan_, weights, count, lane_masks_.get(), pending);
      else
        heap_.masks(weights, masks_.get());
    }
    made_ += count;
  }

  Headers header_;
  const std::uint64_t* queries_;
  std::size_t words_;
  std::size_t m_;
  const Vosh& plan_;
  const float* weights_;
  std::size_t k_;
  VoshLanes lanes_;
  VoshHeap heap_;
  std::unique_ptr<std::uint32_t[]> lane_masks_;  // (k, 16)
  std::unique_ptr<std::uint64_t[]> masks_;       // (k,)
  std::size_t made_ = 0;   // masks exist for the queries before this one
  std::size_t query_ = 0;
  std::size_t flip_ = 0;   // 0 is the query's own bucket
};

namespace portable_level {
using portable::compare;
#define SIMINDEX_LEVEL_TARGET
#include "probe.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
using avx2::compare;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "probe.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
using avx512::compare;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "probe.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level
#endif

template <class Source>
Found run_at(const Table& table, const Search& search, Source& source, int level) {
  Found found;
  if (table.n == 0 || search.m == 0) return found;
#if SIMINDEX_X86
  if (level >= kAvx512) {
    avx512_level::run_any(table, search, source, found);
    return found;
  }
  if (level >= kAvx2) {
    avx2_level::run_any(table, search, source, found);
    return found;
  }
#else
  (void)level;
#endif
  portable_level::run_any(table, search, source, found);
  return found;
}

}  // namespace

Found probe(const Table& table, const Search& search, const std::uint64_t* flips, std::size_t k,
            std::size_t stride, int level) {
  GivenFlips source(table, search, flips, k, stride);
  return run_at(table, search, source, level);
}

Found psm(const Table& table, const Search& search, const Vosh& plan, const float* weights,
          int level) {
  LikelyFlips source(table, search, plan, weights, level);
  return run_at(table, search, source, level);
}

}  // namespace simindex
