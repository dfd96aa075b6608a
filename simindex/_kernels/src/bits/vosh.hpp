// The most likely sets of header bits to flip, in falling probability: [PSM] section 4.
//
// A query has one weight per bit. Bit j of the header flips with odds p_j / (1 - p_j), so by [PSM]
// (6)-(7) the sets S that maximise p(u, S) are those of smallest cost, the sum over S of
// log((1 - p_j) / p_j). Costs come from a table over |w_j| / sigma; sigma is the root mean square of
// the query's whole row of weights (1 where that is 0).
//
// Two ways to the k cheapest sets of at most h bits:
//
//   networked   16 queries stand in the lanes of a register. The header's bits are sorted by |w|
//               with a comparator network; of all sets of ranks only the `candidates` can be among
//               the first k (fewer than k sets dominate them), their costs are summed and a second
//               network brings the k cheapest to the front. No branch depends on the data.
//   heap        best first over VOSH trees, [PSM] Algorithm 2, for larger k or wider headers.
//
// What is rounded (networked only; both: |w| / sigma by a few units in the last float32 place).
// Keys carry their own number in their lowest bits: |w| loses 5 of its 23 mantissa bits (relative
// 2^-18), so bits closer than that may swap and a cost may come from the neighbouring entry of the
// table; a cost sum loses as many bits as number the candidates (6 for 35: relative 2^-17; at most 11:
// 2^-12), so sets closer than that may swap places.
//
// Measured (Xeon with AVX-512 at 2.6 GHz, one thread, k = 16, h = 3): 46 ns a query at t = 20 and 57 at
// t = 26 with weights in the second-level cache, 70 to 78 when the 256 bytes come from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cpu/pending.hpp"

namespace simindex {

// What all queries of a call share. `bits` is the length of a row of weights.
struct Vosh {
  std::size_t bits = 0;
  std::span<const float> costs;  // (T,), T >= 1, finite, nondecreasing, >= 0
  float cost_step = 1;           // width of one entry in units of sigma
  int header_bits = 0;           // t <= 64; networked: t <= 32
  int h = 0;
  std::size_t flips = 0;                      // k, at most the number of non-empty sets
  std::span<const std::uint8_t> candidates;   // (C, h) ranks below min(k, t), 255 pads; may be empty
  std::span<const std::uint8_t> sort_network;     // (R, 2) over the t header bits
  std::span<const std::uint16_t> select_network;  // (S, 2) over the C candidates

  bool networked() const { return !candidates.empty(); }
  std::size_t candidate_count() const {
    return h > 0 ? candidates.size() / static_cast<std::size_t>(h) : 0;
  }
};

inline constexpr std::size_t kLanes = 16;
inline constexpr std::size_t kMaxCandidates = 2048;
inline constexpr int kMaxNetworkedBits = 32;

// One value for each of 16 queries.
struct alignas(64) LaneWords {
  std::int32_t lane[kLanes];
};
struct alignas(64) LaneFloats {
  float lane[kLanes];
};

class VoshMemory {
 public:
  explicit VoshMemory(std::size_t candidates)
      : set(std::make_unique_for_overwrite<LaneWords[]>(candidates)),
        set_mask(std::make_unique_for_overwrite<LaneWords[]>(candidates)) {}

  LaneWords key[kMaxNetworkedBits];    // |w| and the bit's number
  LaneFloats cost[kMaxNetworkedBits];  // by rank
  LaneWords bit[kMaxNetworkedBits];    // by rank, as a mask
  LaneFloats scale;
  std::unique_ptr<LaneWords[]> set;       // cost and number of a candidate
  std::unique_ptr<LaneWords[]> set_mask;  // by candidate
};

// Masks of up to 16 queries, whose rows of weights stand at `weights`: masks[flip * 16 + lane] is
// the upper half of word 0, and `pending` lines are asked for on the way. Lanes from `count` on repeat the last query. count >= 1.
//
// `memory` is room for all steps, kept from block to block.
using VoshLanes = void (*)(const Vosh& plan, const float* weights, std::size_t count,
                           VoshMemory& memory, std::uint32_t* masks, Pending& pending);
VoshLanes vosh_lanes(int level);

// The heap, with the memory it keeps from query to query: O(k) nodes of 16 bytes.
class VoshHeap {
 public:
  explicit VoshHeap(const Vosh& plan) : plan_(plan) {}
  void masks(const float* weights, std::uint64_t* out);  // out: (k,)

 private:
  const Vosh& plan_;
  std::vector<std::pair<double, std::uint64_t>> nodes_;  // (cost, set of ranks)
};

// masks (m, k) for weights (m, bits).
void vosh(const Vosh& plan, const float* weights, std::size_t m, int level, std::uint64_t* masks);

}  // namespace simindex
