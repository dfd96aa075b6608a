#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "bind/bindings.hpp"
#include "bind/checked.hpp"
#include "bind/found.hpp"
#include "bind/gil.hpp"
#include "bind/vosh.hpp"
#include "cpu/levels.hpp"
#include "methods/probe/probe.hpp"

namespace nb = nanobind;

namespace simindex {
namespace {

using ProbeResult = std::tuple<nb::object, nb::object, nb::object, std::uint64_t, std::uint64_t>;

ProbeResult result_of(Found& found) {
  MatchColumns all = columns(found.matches);
  return {std::move(all.query), std::move(all.row), std::move(all.distance), found.probes,
          found.compared};
}

ProbeResult bound_probe(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 1>& directory,
                        int directory_bits, int header_bits, const In<std::uint64_t, 2>& queries,
                        const nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu>& flips,
                        int h, bool first, int level) {
  const Table table = table_of(rows, directory, directory_bits, header_bits);
  const Search search = search_of(queries, table.words, h, first);
  require(flips.ndim() == 1 || (flips.ndim() == 2 && flips.shape(0) == search.m),
          "flips: (K,), or (m, K) with a row per query");
  const std::size_t k = flips.shape(flips.ndim() - 1);
  Found found;
  {
    ReleasedGil released;
    found = probe(table, search, flips.data(), k, flips.ndim() == 1 ? 0 : k, resolve_level(level));
  }
  return result_of(found);
}

ProbeResult bound_psm(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 1>& directory,
                      int directory_bits, int header_bits, const In<std::uint64_t, 2>& queries,
                      const In<float, 2>& weights, const In<float, 1>& costs, double cost_step,
                      int h, std::int64_t flips, const In<std::uint8_t, 2>& candidates,
                      const In<std::uint8_t, 2>& sort_network,
                      const In<std::uint16_t, 2>& select_network, bool first, int level) {
  const Table table = table_of(rows, directory, directory_bits, header_bits);
  const Search search = search_of(queries, table.words, h, first);
  require(weights.shape(0) == search.m, "weights: a row per query");
  const Vosh plan = plan_of(weights.shape(1), costs, cost_step, header_bits, h, flips, candidates,
                            sort_network, select_network);
  Found found;
  {
    ReleasedGil released;
    found = psm(table, search, plan, weights.data(), resolve_level(level));
  }
  return result_of(found);
}

IdResult probe_checked(const CheckedTable& checked, int header_bits,
                       const In<std::uint64_t, 2>& queries, const In<std::uint64_t, 1>& flips,
                       int h, bool first, int level, Room* room) {
  const Table table = checked.table(header_bits);
  const Search search = search_of(queries, table.words, h, first, room);
  return with_ids(checked, [&] {
    return probe(table, search, flips.data(), flips.shape(0), 0, resolve_level(level));
  });
}

IdResult psm_checked(const CheckedTable& checked, const CheckedVosh& vosh,
                     const In<std::uint64_t, 2>& queries, const In<float, 2>& weights, bool first,
                     int level, Room* room, const std::optional<In<std::uint8_t, 2>>& costs,
                     std::uint32_t most) {
  const Vosh& plan = vosh.plan();
  const Table table = checked.table(plan.header_bits);
  Search search = search_of(queries, table.words, plan.h, first, room);
  const Likely likely = likely_of(costs, most, search, table.words);
  if (costs) search.likely = &likely;
  require(weights.shape(0) == search.m && weights.shape(1) == plan.bits,
          "weights: a row per query, a column per bit");
  return with_ids(checked, [&] {
    return psm(table, search, plan, weights.data(), resolve_level(level));
  });
}

}  // namespace

void bind_probe(nb::module_& m) {
  nb::exception<NoRoom>(m, "NoRoom", PyExc_MemoryError);
  nb::class_<Room>(m, "Room")
      .def(nb::init<std::int64_t>(), nb::arg("matches"))
      .def("take", &Room::take, nb::arg("matches"))
      .def("give", &Room::give, nb::arg("matches"))
      .def_prop_ro("left", &Room::left);
  m.def("probe", &bound_probe, nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
        nb::arg("directory_bits"), nb::arg("header_bits"), nb::arg("queries").noconvert(),
        nb::arg("flips").noconvert(), nb::arg("h"), nb::arg("first"), nb::arg("level") = -1);
  m.def("psm", &bound_psm, nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
        nb::arg("directory_bits"), nb::arg("header_bits"), nb::arg("queries").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("costs").noconvert(), nb::arg("cost_step"),
        nb::arg("h"), nb::arg("flips"), nb::arg("candidates").noconvert(),
        nb::arg("sort_network").noconvert(), nb::arg("select_network").noconvert(),
        nb::arg("first"), nb::arg("level") = -1);
  nb::class_<CheckedTable>(m, "CheckedTable")
      .def(nb::init<In<std::uint64_t, 2>, In<std::uint32_t, 1>, int, In<std::uint64_t, 1>, Verified*,
                    Verified*>(),
           nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
           nb::arg("directory_bits"), nb::arg("ids").noconvert(),
           nb::arg("verified_rows").none() = nb::none(),
           nb::arg("verified_ids").none() = nb::none(), nb::keep_alive<1, 6>(),
           nb::keep_alive<1, 7>());
  m.def("probe_checked", &probe_checked, nb::arg("table"), nb::arg("header_bits"),
        nb::arg("queries").noconvert(), nb::arg("flips").noconvert(), nb::arg("h"),
        nb::arg("first"), nb::arg("level") = -1, nb::arg("room").none() = nb::none());
  m.def("psm_checked", &psm_checked, nb::arg("table"), nb::arg("vosh"),
        nb::arg("queries").noconvert(), nb::arg("weights").noconvert(), nb::arg("first"),
        nb::arg("level") = -1, nb::arg("room").none() = nb::none(),
        nb::arg("costs").noconvert().none() = nb::none(), nb::arg("most") = 0);
}

}  // namespace simindex
