#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <span>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "bits/records.hpp"
#include "cpu/levels.hpp"
#include "methods/arrange.hpp"
#include "storage/heap_offsets.hpp"
#include "storage/rows.hpp"
#include "storage/sort.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

using U64 = In<std::uint64_t, 1>;
using I64 = In<std::int64_t, 1>;

Out<std::int64_t, 1> bind_sort_rows(const U64& first_words) {
  const std::size_t n = first_words.shape(0);
  Fresh<std::int64_t> order(n);
  {
    ReleasedGil release;
    Fresh<std::uint64_t> keys(n);
    sort_pairs({first_words.data(), nullptr, n}, keys.data(),
               reinterpret_cast<std::uint64_t*>(order.data()));
  }
  return order.release();
}

std::pair<Out<std::uint64_t, 1>, Out<std::uint64_t, 1>> bind_sort_pairs(const U64& keys,
                                                                        const U64& payload) {
  const std::size_t n = keys.shape(0);
  require(payload.shape(0) == n, "keys and payload differ in length");
  Fresh<std::uint64_t> sorted_keys(n);
  Fresh<std::uint64_t> sorted_payload(n);
  {
    ReleasedGil release;
    sort_pairs({keys.data(), payload.data(), n}, sorted_keys.data(), sorted_payload.data());
  }
  return {sorted_keys.release(), sorted_payload.release()};
}

Out<std::uint32_t, 1> bind_header_directory(const U64& first_words, int header_bits) {
  require(header_bits >= 0 && header_bits <= 32, "header_bits must be from 0 to 32");
  require(first_words.shape(0) < std::size_t{1} << 32, "a directory counts fewer than 2**32 rows");
  Fresh<std::uint32_t> directory((std::size_t{1} << header_bits) + 1);
  {
    ReleasedGil release;
    header_directory(as_span(first_words), header_bits, directory.span());
  }
  return directory.release();
}

Out<std::uint64_t, 2> bind_take_rows(const In<std::uint64_t, 2>& values, const I64& order) {
  const std::size_t words = values.shape(1);
  const std::size_t m = order.shape(0);
  Fresh<std::uint64_t> taken(m * words);
  {
    ReleasedGil release;
    const std::span<const std::uint64_t> all(values.data(), values.shape(0) * words);
    require(take_rows(all, words, as_span(order), taken.span()),
            "order names a row that is not there");
  }
  return taken.release({m, words});
}

Out<std::uint64_t, 1> bind_take_at(const U64& values, const In<std::uint32_t, 1>& rows) {
  Fresh<std::uint64_t> taken(rows.shape(0));
  {
    ReleasedGil release;
    require(take_at(as_span(values), as_span(rows), taken.span()),
            "rows names a row that is not there");
  }
  return taken.release();
}

std::pair<Out<std::int64_t, 1>, Out<std::uint8_t, 1>> bind_take_bytes(
    const I64& offsets, const In<std::uint8_t, 1>& data, const I64& order) {
  Fresh<std::int64_t> taken_offsets(order.shape(0) + 1);
  {
    ReleasedGil release;
    require(offsets_hold(as_span(offsets), data.shape(0)),
            "offsets must rise and stay within the data");
    require(take_offsets(as_span(offsets), as_span(order), taken_offsets.span()),
            "order names a string that is not there");
  }
  Fresh<std::uint8_t> taken(static_cast<std::size_t>(taken_offsets.span().back()));
  {
    ReleasedGil release;
    take_bytes(as_span(offsets), as_span(data), as_span(order), taken.span());
  }
  return {taken_offsets.release(), taken.release()};
}

Out<std::uint8_t, 1> bind_equal_bytes(const I64& offsets, const In<std::uint8_t, 1>& data,
                                      const I64& rows, const I64& other_offsets,
                                      const In<std::uint8_t, 1>& other_data,
                                      const I64& other_rows) {
  require(rows.shape(0) == other_rows.shape(0), "rows and other_rows differ in length");
  Fresh<std::uint8_t> equal(rows.shape(0));
  {
    ReleasedGil release;
    require(equal_bytes({as_span(offsets), as_span(data), as_span(rows)},
                        {as_span(other_offsets), as_span(other_data), as_span(other_rows)},
                        equal.span()),
            "a row names a string that is not there, or offsets leave the data");
  }
  return equal.release();
}

Out<std::uint16_t, 1> bind_record_distances(const In<std::uint8_t, 2>& some, const I64& one,
                                            const In<std::uint8_t, 2>& others, const I64& other,
                                            int level) {
  const std::size_t bytes = some.shape(1);
  require(bytes % 8 == 1 && others.shape(1) == bytes, "records: words and a byte, of one width");
  require(bytes < 65536 / 8, "records: fewer than 65,536 bits");
  const std::size_t n = one.shape(0);
  require(other.shape(0) == n, "one and other differ in length");
  Fresh<std::uint16_t> distance(n);
  {
    ReleasedGil release;
    require(all_below(as_span(one), some.shape(0)) && all_below(as_span(other), others.shape(0)),
            "one or other names a row that is not there");
    record_distances({some.data(), bytes / 8}, one.data(), {others.data(), bytes / 8},
                     other.data(), n, distance.data(), resolve_level(level));
  }
  return distance.release();
}

using Arranged = std::tuple<Out<std::int64_t, 1>, Out<std::uint64_t, 1>, Out<std::uint16_t, 1>,
                            Out<std::int64_t, 1>, bool>;

Arranged bind_arrange(const I64& query, const U64& ids, const In<std::uint16_t, 1>& distance,
                      std::int64_t queries, bool with_order, int threads) {
  const std::size_t r = query.shape(0);
  require(ids.shape(0) == r && distance.shape(0) == r, "query, ids and distance differ in length");
  require(queries >= 0, "queries must not be negative");
  require(threads >= 1, "threads: 1 or more");
  Fresh<std::int64_t> sorted_query(r);
  Fresh<std::uint64_t> sorted_ids(r);
  Fresh<std::uint16_t> sorted_distance(r);
  Fresh<std::int64_t> order(with_order ? r : 0);
  Arrangement made;
  {
    ReleasedGil release;
    made = arrange({as_span(query), as_span(ids), as_span(distance)},
                   static_cast<std::size_t>(queries),
                   {sorted_query.span(), sorted_ids.span(), sorted_distance.span(), order.span()},
                   static_cast<std::size_t>(threads));
  }
  require(made.within, "query holds a number outside 0 to queries - 1");
  return {sorted_query.release(), sorted_ids.release(), sorted_distance.release(), order.release(),
          made.repeated};
}

}  // namespace

void bind_rows(nb::module_& m) {
  m.def("sort_rows", &bind_sort_rows, "first_words"_a.noconvert());
  m.def("sort_pairs", &bind_sort_pairs, "keys"_a.noconvert(), "payload"_a.noconvert());
  m.def("header_directory", &bind_header_directory, "first_words"_a.noconvert(), "header_bits"_a);
  m.def("take_rows", &bind_take_rows, "values"_a.noconvert(), "order"_a.noconvert());
  m.def("take_at", &bind_take_at, "values"_a.noconvert(), "rows"_a.noconvert());
  m.def("take_bytes", &bind_take_bytes, "offsets"_a.noconvert(), "data"_a.noconvert(),
        "order"_a.noconvert());
  m.def("equal_bytes", &bind_equal_bytes, "offsets"_a.noconvert(), "data"_a.noconvert(),
        "rows"_a.noconvert(), "other_offsets"_a.noconvert(), "other_data"_a.noconvert(),
        "other_rows"_a.noconvert());
  m.def("record_distances", &bind_record_distances, "some"_a.noconvert(), "one"_a.noconvert(),
        "others"_a.noconvert(), "other"_a.noconvert(), "level"_a = -1);
  m.def("arrange", &bind_arrange, "query"_a.noconvert(), "ids"_a.noconvert(),
        "distance"_a.noconvert(), "queries"_a, "with_order"_a = true, "threads"_a = 1);
}

}  // namespace simindex
