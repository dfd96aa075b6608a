// All pairs of rows that crowd, under any blocks.
#include "pairs/pairs.hpp"

#include <utility>
#include <vector>

#include "input.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::size_t words = in.in(1, 3);
  const std::size_t n = in.in(0, 120);
  std::vector<Bits> blocks;
  std::uint32_t next = 0;
  const auto bits = static_cast<std::uint32_t>(64 * words);
  for (std::size_t left = in.in(1, 6); left > 0 && next < bits; --left) {
    next += static_cast<std::uint32_t>(in.in(0, 3));
    if (next >= bits) break;
    const auto width = static_cast<std::uint32_t>(in.in(1, bits - next));
    blocks.push_back({next, width});
    next += width;
  }
  if (blocks.empty()) blocks.push_back({0, bits});
  const PairSearch search{in.in(0, 30), in.one_in(64) ? std::size_t{2} : std::size_t{1}, in.level(),
                          in.one_in(4) ? in.in(0, 50) : ~std::uint64_t{0}, [] { return false; }};
  const std::size_t agreeing = in.in(0, blocks.size());
  const std::uint32_t block[1] = {static_cast<std::uint32_t>(in.in(0, blocks.size() - 1))};
  const bool one_block = in.one_in(2), expanded = in.one_in(2);
  const Array<std::uint64_t> rows = in.words(n * words);
  const PairRows all{rows.data, n, words};
  DistinctPairs found = one_block ? block_pairs(all, {blocks, block}, search)
                                  : all_pairs(all, blocks, agreeing, search);
  if (expanded) expand(found, n, true, search);
  if (found.too_many) return 0;
  const std::size_t count = found.pairs.size;
  Array<std::int64_t> first(found.equal.size()), row(found.equal.size());
  const SortedPairs sorted = sorted_by_rows(std::move(found.pairs), n);
  REQUIRE(sorted.size == count);
  const auto& a = sorted.a;
  const auto& b = sorted.b;
  const auto& apart = sorted.distance;
  sort_equal(found.equal, n, first.data, row.data);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(a[i] < b[i] && b[i] < n);
    REQUIRE(i == 0 || a[i - 1] < a[i] || (a[i - 1] == a[i] && b[i - 1] < b[i]));
    const std::uint64_t between = distance(rows.data + static_cast<std::size_t>(a[i]) * words,
                                           rows.data + static_cast<std::size_t>(b[i]) * words, words);
    REQUIRE(between == apart[i] && between <= search.h);
  }
  if (one_block || agreeing + search.h > blocks.size() || !expanded) return 0;
  std::size_t truth = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j)
      truth += distance(rows.data + i * words, rows.data + j * words, words) <= search.h;
  REQUIRE(truth == count);
  return 0;
}
