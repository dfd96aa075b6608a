#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bindings.hpp"
#include "bind/checked.hpp"
#include "bind/found.hpp"
#include "bind/gil.hpp"
#include "bind/permuted.hpp"
#include "bits/permutation.hpp"
#include "cpu/levels.hpp"
#include "methods/probe/bphs.hpp"

namespace nb = nanobind;

namespace simindex {
namespace {

// IdResult, and how many hits table 0 does not hold.
using BphsResult = std::tuple<nb::object, nb::object, nb::object, nb::object, std::uint64_t,
                              std::uint64_t, std::uint64_t>;

BphsResult bound_bphs(const CheckedTable& checked, int header_bits,
                      const nb::list& permuted,
                      const In<std::uint64_t, 2>& queries, int h, bool first,
                      std::uint64_t sweep_queries, int level, Room* room) {
  const Table table = checked.table(header_bits);
  const Search search = search_of(queries, table.words, h, first, room);
  const std::vector<PermutedTable> tables = permuted_of(permuted, table);
  std::uint64_t missing = 0;
  IdResult all = with_ids(checked, [&] {
    FoundAgain again = bphs(table, tables, search, sweep_queries, resolve_level(level));
    missing = again.missing;
    return std::move(again.found);
  });
  return std::tuple_cat(std::move(all), std::make_tuple(missing));
}

Out<std::uint64_t, 2> bound_permute(const In<std::uint64_t, 2>& rows,
                                    const In<std::uint64_t, 2>& rotations, int level) {
  check_rows(rows);
  const std::span<const Rotation> moves = rotations_of(rotations);
  check_rotations(moves, rows.shape(1));
  Fresh<std::uint64_t> permuted(rows.size());
  {
    ReleasedGil released;
    permute(rows.data(), rows.shape(0), rows.shape(1), moves, permuted.data(), resolve_level(level));
  }
  return permuted.release({rows.shape(0), rows.shape(1)});
}

}  // namespace

void bind_bphs(nb::module_& m) {
  nb::class_<CheckedPermuted>(m, "CheckedPermuted")
      .def(nb::init<In<std::uint64_t, 2>, In<std::uint32_t, 1>, int, int, In<std::uint64_t, 2>,
                    In<std::uint64_t, 2>, In<std::uint64_t, 1>, In<std::uint64_t, 1>, int,
                    Verified*>(),
           nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
           nb::arg("directory_bits"), nb::arg("header_bits"), nb::arg("rotations").noconvert(),
           nb::arg("inverse").noconvert(), nb::arg("flips").noconvert(),
           nb::arg("header").noconvert(), nb::arg("most_flips"),
           nb::arg("verified").none() = nb::none(), nb::keep_alive<1, 11>());
  m.def("bphs", &bound_bphs, nb::arg("table"), nb::arg("header_bits"), nb::arg("tables"),
        nb::arg("queries").noconvert(), nb::arg("h"), nb::arg("first"), nb::arg("sweep_queries"),
        nb::arg("level") = -1, nb::arg("room").none() = nb::none());
  m.def("permute", &bound_permute, nb::arg("rows").noconvert(), nb::arg("rotations").noconvert(),
        nb::arg("level") = -1);
}

}  // namespace simindex
