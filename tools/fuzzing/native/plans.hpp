// Plans of flip sets as the binding lets them through: ranks and wires that are there, any costs.
#pragma once

#include "bits/vosh.hpp"
#include "input.hpp"

namespace simindex::fuzzing {

struct OwnPlan {
  OwnPlan(Input& in, std::size_t words, int header_bits, bool networked)
      : costs(in.numbers(in.in(1, 9))), candidates(0), sorting(0), selecting(0) {
    plan.bits = 64 * words;
    plan.costs = {costs.data, costs.size};
    plan.cost_step = static_cast<float>(in.in(1, 64)) / 16;
    plan.header_bits = header_bits;
    plan.h = static_cast<int>(in.in(networked ? 1 : 0, 4));
    if (!networked) {
      // A plan asks for no more sets than there are.
      std::size_t sets = 0, choose = 1;
      for (int size = 1; size <= std::min(plan.h, header_bits); ++size)
        sets += choose = choose * static_cast<std::size_t>(header_bits - size + 1) / static_cast<std::size_t>(size);
      plan.flips = std::min(sets, in.in(0, 40));
      return;
    }
    const auto h = static_cast<std::size_t>(plan.h);
    const std::size_t count = in.in(1, 20);
    plan.flips = in.in(1, count);
    const std::size_t ranks = std::min(plan.flips, static_cast<std::size_t>(header_bits));
    if (ranks == 0) {
      plan.flips = 0;
      return;
    }
    candidates = Array<std::uint8_t>(count * h);
    for (std::size_t i = 0; i < count * h; ++i) {
      const std::uint8_t rank = in.byte();
      candidates[i] = i % h != 0 && rank >= 128 ? 255 : static_cast<std::uint8_t>(rank % ranks);
    }
    sorting = Array<std::uint8_t>(2 * in.in(0, 20));
    for (std::size_t i = 0; i < sorting.size; ++i)
      sorting[i] = static_cast<std::uint8_t>(in.byte() % header_bits);
    selecting = Array<std::uint16_t>(2 * in.in(0, 20));
    for (std::size_t i = 0; i < selecting.size; ++i)
      selecting[i] = static_cast<std::uint16_t>(in.byte() % count);
    plan.candidates = {candidates.data, candidates.size};
    plan.sort_network = {sorting.data, sorting.size};
    plan.select_network = {selecting.data, selecting.size};
  }

  Array<float> costs;
  Array<std::uint8_t> candidates;
  Array<std::uint8_t> sorting;
  Array<std::uint16_t> selecting;
  Vosh plan;
};

}  // namespace simindex::fuzzing
