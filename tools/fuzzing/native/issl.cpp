// Slice lists whose starts hold and whose row numbers are arbitrary.
#include "methods/issl/issl.hpp"

#include <algorithm>

#include "tables.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::size_t words = in.in(1, 3);
  const int width = in.one_in(128) ? 16 : 8;
  const std::size_t slices = 64 * words / static_cast<std::size_t>(width);
  const std::size_t values = std::size_t{1} << width;
  const std::size_t n = in.in(0, 80);
  const Array<std::uint64_t> rows = in.words(n * words);
  const Array<std::uint64_t> ids = in.words(n);
  // What the binding has made sure of: from 0, never falling, to n.
  Array<std::uint32_t> starts(slices * (values + 1));
  Array<std::uint32_t> numbers(slices * n);
  const bool right = in.one_in(2);
  for (std::size_t i = 0; i < slices; ++i) {
    std::uint32_t* from = starts.data + i * (values + 1);
    std::fill_n(from, values + 1, 0);
    for (std::size_t row = 0; row < n; ++row) {
      const std::size_t bit = i * static_cast<std::size_t>(width);
      const std::uint64_t slice =
          rows.data[row * words + bit / 64] << bit % 64 >> (64 - static_cast<std::size_t>(width));
      ++from[(right ? slice : in.in(0, values - 1)) + 1];
    }
    for (std::size_t v = 0; v < values; ++v) from[v + 1] += from[v];
    for (std::size_t row = 0; row < n; ++row)
      numbers[i * n + row] = right ? static_cast<std::uint32_t>(row) : in.offset(n);
  }
  if (in.one_in(2) && numbers.size != 0) numbers[in.in(0, numbers.size - 1)] = in.offset(n);
  const SliceTable table{rows.data, n, words, ids.data, starts.data, numbers.data, width, slices};
  const std::size_t m = in.in(0, 20);
  const Array<std::uint64_t> queries = in.words(m * words);
  const int max_error = static_cast<int>(in.in(0, in.one_in(4) ? static_cast<std::size_t>(width) : 2));
  const int level = in.level();
  const auto never = [] { return false; };
  if (in.one_in(2)) {
    const std::size_t k = in.one_in(8) ? in.in(1, 300) : in.in(1, 20);
    Array<std::uint8_t> dead(n);
    for (std::size_t i = 0; i < n; ++i) dead[i] = in.byte() & 1;
    Array<std::uint64_t> found(m * k);
    Array<std::uint16_t> apart(m * k);
    Array<std::uint32_t> row(m * k);
    const std::size_t rerank = in.one_in(4) ? ~std::size_t{0} >> 1 : in.in(1, 100);
    top_slices(table,
               {queries.data, m, k, max_error, rerank, in.one_in(2) ? dead.data : nullptr,
                in.one_in(64) ? std::size_t{2} : std::size_t{1}, level},
               found.data, apart.data, row.data, never);
    for (std::size_t i = 0; i < m * k; ++i) {
      if (row[i] == ~std::uint32_t{0}) continue;
      REQUIRE(row[i] < n && found[i] == ids.data[row[i]]);
      REQUIRE(apart[i] == distance(rows.data + row[i] * words, queries.data + i / k * words, words));
    }
  } else {
    const SliceSearch search{queries.data, m, in.in(0, 100), max_error, in.one_in(2), level};
    Matches found;
    slices_within(table, search, found, never);
    check(found, rows.data, n, words, {queries.data, m, search.h, search.first});
  }
  return 0;
}
