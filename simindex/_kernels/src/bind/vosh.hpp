// The flip sets of VOSH, checked once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "bind/arrays.hpp"
#include "bits/vosh.hpp"

namespace simindex {

Vosh plan_of(std::size_t bits, const In<float, 1>& costs, double cost_step,
             int header_bits, int h, std::int64_t flips, const In<std::uint8_t, 2>& candidates,
             const In<std::uint8_t, 2>& sort_network, const In<std::uint16_t, 2>& select_network);

class CheckedVosh {
 public:
  CheckedVosh(In<float, 1> costs, double cost_step, int bits, int header_bits, int h,
              std::int64_t flips, In<std::uint8_t, 2> candidates,
              In<std::uint8_t, 2> sort_network, In<std::uint16_t, 2> select_network)
      : costs_(std::move(costs)), candidates_(std::move(candidates)),
        sort_network_(std::move(sort_network)), select_network_(std::move(select_network)),
        plan_(plan_of(bits, costs_, cost_step, header_bits, h, flips, candidates_, sort_network_,
                      select_network_)) {}

  const Vosh& plan() const { return plan_; }

 private:
  In<float, 1> costs_;
  In<std::uint8_t, 2> candidates_;
  In<std::uint8_t, 2> sort_network_;
  In<std::uint16_t, 2> select_network_;
  Vosh plan_;
};

}  // namespace simindex
