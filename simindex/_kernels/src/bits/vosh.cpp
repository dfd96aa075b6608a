#include "bits/vosh.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

namespace simindex {
namespace {

constexpr int kMaxHeaderBits = 64;

}  // namespace

void VoshHeap::masks(const float* weights, std::uint64_t* out) {
  const int t = plan_.header_bits;
  double squares = 0;
  for (std::size_t j = 0; j < plan_.bits; ++j)
    squares += static_cast<double>(weights[j]) * static_cast<double>(weights[j]);
  const double mean = squares / static_cast<double>(plan_.bits);
  const double scale = 1.0 / ((mean > 0 ? std::sqrt(mean) : 1.0) * plan_.cost_step);
  const double last = static_cast<double>(plan_.costs.size() - 1);

  // cost[r] and bit[r]: the header's bits by rank, bit 1 of the paper first.
  std::pair<float, int> sorted[kMaxHeaderBits];
  for (int j = 0; j < t; ++j) {
    const float weight = std::fabs(weights[j]);
    sorted[j] = {weight == weight ? weight : std::numeric_limits<float>::infinity(), j};
  }
  std::sort(sorted, sorted + t);
  double cost[kMaxHeaderBits];
  std::uint64_t bit[kMaxHeaderBits];
  for (int rank = 0; rank < t; ++rank) {
    const double entry = sorted[rank].first * scale;
    cost[rank] = plan_.costs[static_cast<std::size_t>(entry < last ? entry : last)];
    bit[rank] = std::uint64_t{1} << (63 - sorted[rank].second);
  }

  // A set of ranks is a word, rank r its bit r. One heap over the trees of all sizes.
  nodes_.clear();
  const auto later = std::greater<>{};
  double root_cost = 0;
  for (int size = 1; size <= std::min(plan_.h, t); ++size) {
    root_cost += cost[size - 1];
    const std::uint64_t root = size == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
    nodes_.emplace_back(root_cost, root);
  }
  std::make_heap(nodes_.begin(), nodes_.end(), later);

  for (std::size_t found = 0; found < plan_.flips; ++found) {
    if (nodes_.empty()) {  // fewer sets than flips: the caller clamps, this only stays in bounds
      out[found] = 0;
      continue;
    }
    std::pop_heap(nodes_.begin(), nodes_.end(), later);
    const double set_cost = nodes_.back().first;
    const std::uint64_t set = nodes_.back().second;
    nodes_.pop_back();
    std::uint64_t mask = 0;
    for (std::uint64_t rest = set; rest != 0; rest &= rest - 1) mask |= bit[std::countr_zero(rest)];
    out[found] = mask;

    const auto add_child = [&](int from) {
      const std::uint64_t moved = set ^ (std::uint64_t{3} << from);
      nodes_.emplace_back(set_cost + (cost[from + 1] - cost[from]), moved);
      std::push_heap(nodes_.begin(), nodes_.end(), later);
    };
    const int top = 63 - std::countl_zero(set);
    if (top + 1 < t) add_child(top);  // left child
    // Right child: the first gap from the right lies under the run of ones that ends at `top`. It is
    // exactly 2 if one zero separates that run from the next element.
    const int run = std::countl_one(set << (63 - top));
    const int below = top - run - 1;
    if (below >= 0 && (set >> below & 1) != 0) add_child(below);
  }
}

void vosh(const Vosh& plan, const float* weights, std::size_t m, int level, std::uint64_t* masks) {
  const std::size_t k = plan.flips;
  if (k == 0) return;
  if (!plan.networked()) {
    VoshHeap heap(plan);
    for (std::size_t q = 0; q < m; ++q) heap.masks(weights + q * plan.bits, masks + q * k);
    return;
  }
  const VoshLanes lanes = vosh_lanes(level);
  std::vector<std::uint32_t> block(k * kLanes);
  VoshMemory memory(plan.candidate_count());
  Pending nothing;
  for (std::size_t q = 0; q < m; q += kLanes) {
    const std::size_t count = std::min(kLanes, m - q);
    lanes(plan, weights + q * plan.bits, count, memory, block.data(), nothing);
    for (std::size_t lane = 0; lane < count; ++lane)
      for (std::size_t flip = 0; flip < k; ++flip)
        masks[(q + lane) * k + flip] = static_cast<std::uint64_t>(block[flip * kLanes + lane]) << 32;
  }
}

}  // namespace simindex
