#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/checked.hpp"
#include "bind/found.hpp"
#include "bind/gil.hpp"
#include "bind/text_inputs.hpp"
#include "cpu/levels.hpp"
#include "methods/probe/probe.hpp"
#include "methods/scan/scan.hpp"
#include "methods/scan/topscan.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

using ScanResult = std::tuple<nb::object, nb::object, nb::object, std::uint64_t>;

ScanResult bound_scan(const In<std::uint64_t, 2>& rows, const In<std::uint64_t, 2>& queries, int h,
                      bool first, int level, Room* room) {
  check_rows(rows);
  const Search search = search_of(queries, rows.shape(1), h, first, room);
  Found found;
  {
    ReleasedGil released;
    found = scan(rows.data(), rows.shape(0), rows.shape(1), search, resolve_level(level));
  }
  MatchColumns all = columns(found.matches);
  return {std::move(all.query), std::move(all.row), std::move(all.distance), found.compared};
}

using Places = std::tuple<Out<std::uint64_t, 2>, Out<std::uint16_t, 2>, Out<std::uint32_t, 2>>;

Places bind_top_scan(const In<std::uint64_t, 2>& rows, const In<std::uint64_t, 1>& ids,
                     const In<std::uint64_t, 2>& queries, std::int64_t k,
                     const std::optional<In<std::uint8_t, 1>>& dead, std::size_t threads,
                     int level) {
  const std::size_t n = rows.shape(0);
  const std::size_t words = rows.shape(1);
  const std::size_t m = queries.shape(0);
  check_rows(rows);
  require(ids.shape(0) == n, "ids: one for each row");
  require(aligned(ids.data(), 8), "ids: needs words aligned to 8 bytes; copy the array");
  require(queries.shape(1) == words, "queries: as many words as the rows");
  require(aligned(queries.data(), 8), "queries: needs words aligned to 8 bytes; copy the array");
  require(!dead || dead->shape(0) == n, "dead: one for each row");
  require(k >= 1, "k: 1 or more");
  require(static_cast<std::uint64_t>(k) < (std::uint64_t{1} << 40) / std::max<std::size_t>(m, 1),
          "k: fewer than 2**40 places in all");
  require(threads >= 1, "threads: 1 or more");
  const auto places = static_cast<std::size_t>(k);
  Fresh<std::uint64_t> found_ids(m * places);
  Fresh<std::uint16_t> distances(m * places);
  Fresh<std::uint32_t> found_rows(m * places);
  Signals signals;
  {
    ReleasedGil release;
    const TopRows table{rows.data(), ids.data(), dead ? dead->data() : nullptr, n, words};
    std::vector<TopK> tops = top_scan(table, queries.data(), m, places, threads,
                                      resolve_level(level), [&] { return signals(); });
    std::fill_n(found_ids.data(), m * places, ~std::uint64_t{0});
    std::fill_n(distances.data(), m * places, static_cast<std::uint16_t>(64 * words + 1));
    std::fill_n(found_rows.data(), m * places, ~std::uint32_t{0});
    for (std::size_t q = 0; q < m; ++q) {
      std::size_t at = q * places;
      for (const TopK::Entry& entry : tops[q].sorted()) {
        found_ids.data()[at] = entry.id;
        distances.data()[at] = entry.distance;
        found_rows.data()[at++] = entry.row;
      }
    }
  }
  signals.raise();
  return {found_ids.release({m, places}), distances.release({m, places}),
          found_rows.release({m, places})};
}

}  // namespace

void bind_scan(nb::module_& m) {
  m.def("scan", &bound_scan, nb::arg("rows").noconvert(), nb::arg("queries").noconvert(),
        nb::arg("h"), nb::arg("first"), nb::arg("level") = -1, nb::arg("room").none() = nb::none());
  m.def("top_scan", &bind_top_scan, "rows"_a.noconvert(), "ids"_a.noconvert(),
        "queries"_a.noconvert(), "k"_a, "dead"_a.noconvert() = nb::none(), "threads"_a = 1,
        "level"_a = -1);
}

}  // namespace simindex
