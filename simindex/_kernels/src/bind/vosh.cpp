#include "bind/vosh.hpp"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "cpu/levels.hpp"

namespace nb = nanobind;

namespace simindex {

Vosh plan_of(std::size_t bits, const In<float, 1>& costs, double cost_step,
             int header_bits, int h, std::int64_t flips, const In<std::uint8_t, 2>& candidates,
             const In<std::uint8_t, 2>& sort_network, const In<std::uint16_t, 2>& select_network) {
  Vosh plan;
  plan.bits = bits;
  plan.costs = {costs.data(), costs.shape(0)};
  plan.cost_step = static_cast<float>(cost_step);
  plan.header_bits = header_bits;
  plan.h = h;
  plan.flips = static_cast<std::size_t>(flips);
  require(plan.bits >= 64 && plan.bits % 64 == 0, "weights: as many columns as fingerprint bits");
  require(costs.shape(0) >= 1 && costs.shape(0) <= std::size_t{1} << 24,
          "costs: from 1 to 2**24 entries");
  require(plan.cost_step > 0 && std::isfinite(plan.cost_step), "cost_step: above 0");
  require(0 <= header_bits && header_bits <= 64, "header_bits: from 0 to 64");
  require(h >= 0 && flips >= 0, "h and flips: 0 or more");
  if (flips == 0 || candidates.shape(0) == 0) return plan;

  plan.candidates = {candidates.data(), candidates.size()};
  plan.sort_network = {sort_network.data(), sort_network.size()};
  plan.select_network = {select_network.data(), select_network.size()};
  require(header_bits <= kMaxNetworkedBits, "header_bits: networks sort at most 32 bits");
  require(candidates.shape(0) <= kMaxCandidates, "candidates: at most 2048");
  require(h >= 1 && candidates.shape(1) == static_cast<std::size_t>(h), "candidates: (C, h)");
  require(plan.flips <= candidates.shape(0), "flips: at most the number of candidates");
  require(sort_network.shape(1) == 2 && select_network.shape(1) == 2, "networks: pairs of wires");
  const std::size_t ranks = std::min(plan.flips, static_cast<std::size_t>(header_bits));
  bool inside = true;
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const std::uint8_t rank = plan.candidates[i];
    inside &= rank < ranks || (rank == 255 && i % static_cast<std::size_t>(h) != 0);
  }
  for (const std::uint8_t wire : plan.sort_network) inside &= wire < header_bits;
  for (const std::uint16_t wire : plan.select_network) inside &= wire < candidates.shape(0);
  require(inside, "a candidate or a network names a rank or wire that is not there");
  return plan;
}

namespace {

Out<std::uint64_t, 2> bound_vosh(const In<float, 2>& weights, const In<float, 1>& costs,
                              double cost_step, int header_bits, int h, std::int64_t flips,
                              const In<std::uint8_t, 2>& candidates,
                              const In<std::uint8_t, 2>& sort_network,
                              const In<std::uint16_t, 2>& select_network, int level) {
  const Vosh plan = plan_of(weights.shape(1), costs, cost_step, header_bits, h, flips, candidates,
                            sort_network, select_network);
  const std::size_t m = weights.shape(0);
  Fresh<std::uint64_t> masks(m * plan.flips);
  {
    ReleasedGil released;
    vosh(plan, weights.data(), m, resolve_level(level), masks.data());
  }
  return masks.release({m, plan.flips});
}

}  // namespace

void bind_vosh(nb::module_& m) {
  m.def("vosh", &bound_vosh, nb::arg("weights").noconvert(), nb::arg("costs").noconvert(),
        nb::arg("cost_step"), nb::arg("header_bits"), nb::arg("h"), nb::arg("flips"),
        nb::arg("candidates").noconvert(), nb::arg("sort_network").noconvert(),
        nb::arg("select_network").noconvert(), nb::arg("level") = -1);
  nb::class_<CheckedVosh>(m, "CheckedVosh")
      .def(nb::init<In<float, 1>, double, int, int, int, std::int64_t, In<std::uint8_t, 2>,
                    In<std::uint8_t, 2>, In<std::uint16_t, 2>>(),
           nb::arg("costs").noconvert(), nb::arg("cost_step"), nb::arg("bits"),
           nb::arg("header_bits"), nb::arg("h"), nb::arg("flips"),
           nb::arg("candidates").noconvert(), nb::arg("sort_network").noconvert(),
           nb::arg("select_network").noconvert());
}

}  // namespace simindex
