// Scans, the nearest documents of each query, and look-ups in rows that may not be sorted.
#include "methods/lookup.hpp"
#include "methods/scan/scan.hpp"
#include "methods/scan/topscan.hpp"
#include "tables.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::size_t words = in.one_in(4) ? in.in(1, 64) : in.in(1, 4);
  const std::size_t m = in.in(0, 40);
  const OwnTable own(in, words);
  const std::size_t n = own.table.n;
  const Array<std::uint64_t> queries = in.words(m * words);
  const int level = in.level();
  switch (in.in(0, 2)) {
    case 0: {
      const Search search{queries.data, m, in.in(0, 20) * in.in(0, 20), in.one_in(2)};
      const Found found = scan(own.rows.data, n, words, search, level);
      check(found.matches, own.rows.data, n, words, search);
      break;
    }
    case 1: {
      const Array<std::uint64_t> ids = in.words(n);
      Array<std::uint8_t> dead(n);
      for (std::size_t i = 0; i < n; ++i) dead[i] = in.byte() & 1;
      const std::size_t k = in.one_in(4) ? in.in(1, 300) : in.in(1, 20);
      const TopRows table{own.rows.data, ids.data, in.one_in(2) ? dead.data : nullptr, n, words};
      auto tops = top_scan(table, queries.data, m, k,
                           in.one_in(64) ? std::size_t{2} : std::size_t{1}, level,
                           [] { return false; });
      REQUIRE(tops.size() == m);
      for (std::size_t q = 0; q < m; ++q)
        for (const TopK::Entry& entry : tops[q].sorted()) {
          REQUIRE(entry.row < n && entry.id == ids.data[entry.row]);
          REQUIRE(table.dead == nullptr || table.dead[entry.row] == 0);
          REQUIRE(entry.distance ==
                  distance(own.rows.data + entry.row * words, queries.data + q * words, words));
        }
      break;
    }
    default: {
      const std::size_t k = in.in(0, 9);
      const bool shared = in.one_in(2);
      const Array<std::uint64_t> flips = in.words(shared ? k : k * m);
      Headers headers{queries.data, m, words, flips.data, k, shared ? 0 : k,
                      static_cast<int>(in.in(0, 64))};
      Array<std::uint32_t> first(m * k), end(m * k);
      Array<std::uint16_t> steps(m * k), end_steps(m * k);
      const Buckets out{first, end, steps, end_steps};
      const SortedWords rows{own.rows.data, n, words};
      switch (in.in(0, 2)) {
        case 0: look_up_by_bisection(rows, headers, out); break;
        case 1: look_up_by_interpolation(rows, headers, out); break;
        default:
          headers.header_bits = own.table.header_bits;
          look_up_in_directory(own.directory, own.table.directory_bits, n, headers, out);
      }
      for (std::size_t i = 0; i < m * k; ++i) REQUIRE(first[i] <= end[i] && end[i] <= n);
    }
  }
  return 0;
}
