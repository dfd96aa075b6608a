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
#include "bits/permutation.hpp"
#include "cpu/levels.hpp"
#include "methods/probe/bphs.hpp"

namespace nb = nanobind;

namespace simindex {
namespace {

std::span<const Rotation> rotations_of(const In<std::uint64_t, 2>& rotations) {
  require(rotations.shape(1) == 4, "rotations: (k, 4)");
  require(aligned(rotations.data(), 8), "rotations: aligned to 8 bytes; copy the array");
  return {reinterpret_cast<const Rotation*>(rotations.data()), rotations.shape(0)};
}

void check_rotations(std::span<const Rotation> rotations, std::size_t words) {
  for (const Rotation& rotation : rotations)
    require(rotation.source < words && rotation.target < words && rotation.left < 64,
            "rotations: of words that are there, by less than 64");
}

// One table of a block design, checked once.
class CheckedPermuted {
 public:
  CheckedPermuted(In<std::uint64_t, 2> rows, In<std::uint32_t, 1> directory, int directory_bits,
                  int header_bits, In<std::uint64_t, 2> rotations, In<std::uint64_t, 2> inverse,
                  In<std::uint64_t, 1> flips, In<std::uint64_t, 1> header, int most_flips,
                  Verified* verified)
      : rows_(std::move(rows)), directory_(std::move(directory)),
        rotations_(std::move(rotations)), inverse_(std::move(inverse)), flips_(std::move(flips)),
        header_(std::move(header)),
        table_{table_of(rows_, directory_, directory_bits, header_bits, verified),
               rotations_of(rotations_), rotations_of(inverse_),
               {flips_.data(), flips_.shape(0)}, {header_.data(), header_.shape(0)},
               static_cast<std::uint64_t>(most_flips)} {
    require(most_flips >= 0, "most_flips: 0 or more");
    require(header_.shape(0) == rows_.shape(1), "header: as many words as the rows");
    require(rotations_.shape(0) == 0 || inverse_.shape(0) != 0, "inverse: of the rotations");
    check_rotations(table_.rotations, rows_.shape(1));
    check_rotations(table_.inverse, rows_.shape(1));
  }

  const PermutedTable& table() const { return table_; }

 private:
  In<std::uint64_t, 2> rows_;
  In<std::uint32_t, 1> directory_;
  In<std::uint64_t, 2> rotations_;
  In<std::uint64_t, 2> inverse_;
  In<std::uint64_t, 1> flips_;
  In<std::uint64_t, 1> header_;
  PermutedTable table_;
};

// IdResult, and how many hits table 0 does not hold.
using BphsResult = std::tuple<nb::object, nb::object, nb::object, nb::object, std::uint64_t,
                              std::uint64_t, std::uint64_t>;

BphsResult bound_bphs(const CheckedTable& checked, int header_bits,
                      const nb::list& permuted,
                      const In<std::uint64_t, 2>& queries, int h, bool first,
                      std::uint64_t sweep_queries, int level, Room* room) {
  const Table table = checked.table(header_bits);
  const Search search = search_of(queries, table.words, h, first, room);
  // Taken one by one: nanobind's own conversion to a vector ends the process where memory runs out.
  std::vector<PermutedTable> tables;
  tables.reserve(permuted.size());
  for (const nb::handle item : permuted) {
    const CheckedPermuted* one = nullptr;
    if (!nb::try_cast(item, one)) throw nb::type_error("tables: a list of CheckedPermuted");
    require(one != nullptr && one->table().table.words == table.words,
            "tables: as many words as the rows");
    require(!one->table().rotations.empty() || one->table().table.n == table.n,
            "tables: without rotations, as many rows as table 0");
    tables.push_back(one->table());
  }
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
