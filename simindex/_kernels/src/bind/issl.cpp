#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/checked.hpp"
#include "bind/columns.hpp"
#include "bind/gil.hpp"
#include "bind/text_inputs.hpp"
#include "cpu/levels.hpp"
#include "methods/issl/issl.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

// Slice lists that were checked once and are searched many times. The arrays never change.
class CheckedSlices {
 public:
  CheckedSlices(In<std::uint64_t, 2> rows, In<std::uint64_t, 1> ids, In<std::uint32_t, 2> starts,
                In<std::uint32_t, 2> numbers, Verified* verified_rows, Verified* verified_ids,
                Verified* verified_numbers)
      : rows_(std::move(rows)), ids_(std::move(ids)), starts_(std::move(starts)),
        numbers_(std::move(numbers)) {
    const std::size_t n = rows_.shape(0), words = rows_.shape(1);
    require(n <= kMaxRows, "rows: a table holds at most 2**32 - 16 rows");
    require(1 <= words && words <= kMaxWords, "rows: from 1 to 1023 words wide");
    require(ids_.shape(0) == n, "ids: one for each row");
    const std::size_t values = starts_.shape(1) - 1;
    require(starts_.shape(1) == (1 << 8) + 1 || starts_.shape(1) == (1 << 16) + 1,
            "starts: 2**8 + 1 or 2**16 + 1 of a slice");
    const int width = values == 1 << 8 ? 8 : 16;
    const std::size_t slices = 64 * words / static_cast<std::size_t>(width);
    require(starts_.shape(0) == slices && numbers_.shape(0) == slices,
            "starts and numbers: of all slices of a row");
    require(numbers_.shape(1) == n, "numbers: one for each row, of each slice");
    require(aligned(rows_.data(), 8) && aligned(ids_.data(), 8) && aligned(starts_.data(), 4) &&
                aligned(numbers_.data(), 4),
            "arrays need values aligned to their size; copy them");
    bool whole = true;
    {
      ReleasedGil released;
      for (std::size_t i = 0; i < slices; ++i) {
        const std::uint32_t* from = starts_.data() + i * (values + 1);
        whole &= from[0] == 0 && from[values] == n;
        for (std::size_t v = 0; v < values; ++v) whole &= from[v] <= from[v + 1];
      }
    }
    require(whole, "starts: those of a slice ascend from 0 to the number of rows");
    require_within(verified_rows, rows_.data(), rows_.nbytes());
    require_within(verified_ids, ids_.data(), ids_.nbytes());
    require_within(verified_numbers, numbers_.data(), numbers_.nbytes());
    table_ = {rows_.data(),     n,
              words,            ids_.data(),
              starts_.data(),   numbers_.data(),
              width,            slices,
              verified_rows,    verified_ids,
              verified_numbers};
  }

  const SliceTable& table() const { return table_; }

 private:
  In<std::uint64_t, 2> rows_;
  In<std::uint64_t, 1> ids_;
  In<std::uint32_t, 2> starts_;
  In<std::uint32_t, 2> numbers_;
  SliceTable table_;
};

void check_queries(const SliceTable& table, const In<std::uint64_t, 2>& queries, int max_error) {
  require(queries.shape(1) == table.words, "queries: as many words as the rows");
  require(aligned(queries.data(), 8), "queries: needs words aligned to 8 bytes; copy the array");
  require(0 <= max_error && max_error <= table.width,
          "max_error: from 0 to the bits of a slice");
}

using Top = std::tuple<Out<std::uint64_t, 2>, Out<std::uint16_t, 2>, Out<std::uint32_t, 2>,
                       std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

Top bind_top_slices(const CheckedSlices& slices, const In<std::uint64_t, 2>& queries,
                    std::int64_t k, int max_error, std::int64_t rerank,
                    const std::optional<In<std::uint8_t, 1>>& dead, std::int64_t threads,
                    int level) {
  const SliceTable& table = slices.table();
  check_queries(table, queries, max_error);
  require(k >= 1, "k: 1 or more");
  require(rerank >= 1, "rerank: 1 or more");
  require(threads >= 1, "threads: 1 or more");
  require(!dead || dead->shape(0) == table.n, "dead: one for each row");
  const std::size_t m = queries.shape(0), size = static_cast<std::size_t>(k);
  require(m == 0 || size <= (std::size_t{1} << 48) / m, "k: fewer than 2**48 results in all");
  const TopSearch search{queries.data(),
                         m,
                         size,
                         max_error,
                         static_cast<std::size_t>(rerank),
                         dead ? dead->data() : nullptr,
                         static_cast<std::size_t>(threads),
                         resolve_level(level)};
  Fresh<std::uint64_t> ids(m * size);
  Fresh<std::uint16_t> distances(m * size);
  Fresh<std::uint32_t> rows(m * size);
  SliceCounts counts;
  Signals signals;
  {
    ReleasedGil released;
    counts = top_slices(table, search, ids.data(), distances.data(), rows.data(),
                        [&] { return signals(); });
  }
  signals.raise();
  return {ids.release({m, size}), distances.release({m, size}), rows.release({m, size}),
          counts.lists,           counts.scored,                counts.compared,
          counts.damaged};
}

using Within = std::tuple<nb::object, nb::object, nb::object, nb::object, std::uint64_t,
                          std::uint64_t, std::uint64_t>;

Within bind_slices_within(const CheckedSlices& slices, const In<std::uint64_t, 2>& queries,
                          std::int64_t h, int max_error, bool first, int level, Room* room) {
  const SliceTable& table = slices.table();
  check_queries(table, queries, max_error);
  require(h >= 0, "h: 0 or more");
  const SliceSearch search{queries.data(), queries.shape(0), static_cast<std::uint64_t>(h),
                           max_error,      first,            resolve_level(level)};
  Matches found(room);
  SliceCounts counts;
  std::uint64_t* ids = nullptr;
  Signals signals;
  {
    ReleasedGil released;
    counts = slices_within(table, search, found, [&] { return signals(); });
    if (!counts.stopped) {
      for (std::size_t i = 0; i < found.size; ++i) table.touch_id(found.row[i]);
      ids = static_cast<std::uint64_t*>(std::malloc((found.size + 1) * sizeof(std::uint64_t)));
      if (ids == nullptr) throw std::bad_alloc();
      for (std::size_t i = 0; i < found.size; ++i) ids[i] = table.ids[found.row[i]];
    }
  }
  signals.raise();
  found.trim();
  const std::size_t size = found.size;
  nb::object id = column(ids, size);
  nb::object query = column(found.query, size);
  nb::object row = column(found.row, size);
  nb::object distance = column(found.distance, size);
  return {std::move(query), std::move(row), std::move(distance), std::move(id),
          counts.lists,     counts.compared, counts.damaged};
}

}  // namespace

void bind_issl(nb::module_& m) {
  nb::class_<CheckedSlices>(m, "CheckedSlices")
      .def(nb::init<In<std::uint64_t, 2>, In<std::uint64_t, 1>, In<std::uint32_t, 2>,
                    In<std::uint32_t, 2>, Verified*, Verified*, Verified*>(),
           "rows"_a.noconvert(), "ids"_a.noconvert(), "starts"_a.noconvert(),
           "numbers"_a.noconvert(), "verified_rows"_a.none() = nb::none(),
           "verified_ids"_a.none() = nb::none(), "verified_numbers"_a.none() = nb::none(),
           nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
  m.def("top_slices", &bind_top_slices, "slices"_a, "queries"_a.noconvert(), "k"_a, "max_error"_a,
        "rerank"_a, "dead"_a.noconvert().none() = nb::none(), "threads"_a = 1, "level"_a = -1);
  m.def("slices_within", &bind_slices_within, "slices"_a, "queries"_a.noconvert(), "h"_a,
        "max_error"_a, "first"_a, "level"_a = -1, "room"_a.none() = nb::none());
}

}  // namespace simindex
