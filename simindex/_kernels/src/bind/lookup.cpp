#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "methods/lookup.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

using U64Rows = In<std::uint64_t, 2>;

// (m, k) each: first, end, steps, end_steps.
using BucketColumns = std::tuple<Out<std::uint32_t, 2>, Out<std::uint32_t, 2>,
                                 Out<std::uint16_t, 2>, Out<std::uint16_t, 2>>;

Headers headers_of(const U64Rows& queries, const U64Rows& flips, int header_bits) {
  const std::size_t m = queries.shape(0);
  require(queries.shape(1) >= 1, "queries: at least 1 word wide");
  require(flips.shape(0) == 1 || flips.shape(0) == m, "flips: 1 row for all queries, or 1 for each");
  require(aligned(queries.data(), 8) && aligned(flips.data(), 8),
          "queries and flips: need words aligned to 8 bytes; copy the arrays");
  require(flips.shape(1) == 0 || m <= (std::size_t{1} << 48) / flips.shape(1),
          "queries and flips: at most 2**48 headers");
  Headers headers;
  headers.queries = queries.data();
  headers.m = m;
  headers.words = queries.shape(1);
  headers.flips = flips.data();
  headers.k = flips.shape(1);
  headers.stride = flips.shape(0) == 1 ? 0 : flips.shape(1);
  headers.header_bits = header_bits;
  return headers;
}

template <typename LookUp>
BucketColumns buckets(const Headers& headers, LookUp&& look_up) {
  const std::size_t size = headers.m * headers.k;
  Fresh<std::uint32_t> first(size), end(size);
  Fresh<std::uint16_t> steps(size), end_steps(size);
  {
    ReleasedGil release;
    look_up(Buckets{first.span(), end.span(), steps.span(), end_steps.span()});
  }
  return {first.release({headers.m, headers.k}), end.release({headers.m, headers.k}),
          steps.release({headers.m, headers.k}), end_steps.release({headers.m, headers.k})};
}

BucketColumns bind_look_up(const U64Rows& rows, const U64Rows& queries, const U64Rows& flips,
                           int header_bits, bool interpolated) {
  require(rows.shape(0) < std::size_t{1} << 32, "rows: fewer than 2**32");
  require(rows.shape(1) >= 1 && rows.shape(1) == queries.shape(1),
          "queries: as many words as the rows");
  require(aligned(rows.data(), 8), "rows: needs words aligned to 8 bytes; copy the array");
  require(0 <= header_bits && header_bits <= 64, "header_bits: from 0 to 64");
  const SortedWords table{rows.data(), rows.shape(0), rows.shape(1)};
  const Headers headers = headers_of(queries, flips, header_bits);
  return buckets(headers, [&](const Buckets& out) {
    if (interpolated) return look_up_by_interpolation(table, headers, out);
    look_up_by_bisection(table, headers, out);
  });
}

BucketColumns bind_look_up_in_directory(const In<std::uint32_t, 1>& directory, int directory_bits,
                                        std::int64_t rows, const U64Rows& queries,
                                        const U64Rows& flips, int header_bits) {
  require(0 <= directory_bits && directory_bits <= 32, "directory_bits: from 0 to 32");
  require(directory.shape(0) == (std::size_t{1} << directory_bits) + 1,
          "directory: needs 2**directory_bits + 1 entries");
  require(aligned(directory.data(), 4), "directory: needs entries aligned to 4 bytes");
  require(0 <= rows && rows < std::int64_t{1} << 32, "rows: from 0 to 2**32 - 1");
  require(0 <= header_bits && header_bits <= directory_bits,
          "header_bits: from 0 to directory_bits");
  const Headers headers = headers_of(queries, flips, header_bits);
  return buckets(headers, [&](const Buckets& out) {
    look_up_in_directory(as_span(directory), directory_bits, static_cast<std::size_t>(rows),
                         headers, out);
  });
}

}  // namespace

void bind_lookup(nb::module_& m) {
  m.def("look_up", &bind_look_up, "rows"_a.noconvert(), "queries"_a.noconvert(),
        "flips"_a.noconvert(), "header_bits"_a, "interpolated"_a);
  m.def("look_up_in_directory", &bind_look_up_in_directory, "directory"_a.noconvert(),
        "directory_bits"_a, "rows"_a, "queries"_a.noconvert(), "flips"_a.noconvert(),
        "header_bits"_a);
}

}  // namespace simindex
