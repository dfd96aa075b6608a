#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "bind/text_inputs.hpp"
#include "cpu/levels.hpp"
#include "pairs/pairs.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

constexpr std::uint64_t kAnyNumber = ~std::uint64_t{0};

using Columns =
    std::tuple<Out<std::uint32_t, 1>, Out<std::uint32_t, 1>, Out<std::uint16_t, 1>>;

PairRows rows_of(const In<std::uint64_t, 2>& rows) {
  require(rows.shape(0) < std::size_t{1} << 32, "rows: fewer than 2**32");
  require(1 <= rows.shape(1) && rows.shape(1) <= 1023, "rows: from 1 to 1023 words wide");
  return {rows.data(), rows.shape(0), rows.shape(1)};
}

std::vector<Bits> blocks_of(const In<std::uint32_t, 2>& blocks, std::size_t words) {
  require(blocks.shape(0) >= 1 && blocks.shape(1) == 2, "blocks: (G, 2), first bit and width");
  std::vector<Bits> all(blocks.shape(0));
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {blocks.data()[2 * i], blocks.data()[2 * i + 1]};
    require(all[i].first >= next && all[i].width >= 1, "blocks: ascending, each of some bits");
    next = std::uint64_t{all[i].first} + all[i].width;
  }
  require(next <= 64 * words, "blocks: within the rows");
  return all;
}

// A column for numpy, as numbers of the same width.
template <class T, class Found>
Out<T, 1> given(Memory<Found>& column, std::size_t size) {
  static_assert(sizeof(T) == sizeof(Found));
  if (column == nullptr) column = allocate<Found>(1);
  T* const data = reinterpret_cast<T*>(column.release());
  nb::capsule owner(data, [](void* memory) noexcept { FreeMemory()(memory); });
  const std::size_t shape[1] = {size};
  return Out<T, 1>(data, 1, shape, owner);
}

std::optional<Columns> bind_block_pairs(const In<std::uint64_t, 2>& rows,
                                        const In<std::uint32_t, 2>& blocks, std::uint32_t block,
                                        int h, std::size_t threads, int level,
                                        std::optional<std::uint64_t> most) {
  const PairRows all = rows_of(rows);
  const std::vector<Bits> partition = blocks_of(blocks, all.words);
  require(block < partition.size(), "block: one of the blocks");
  require(h >= 0, "h: 0 or more");
  require(threads >= 1, "threads: 1 or more");
  const std::uint32_t agreeing[1] = {block};
  Signals signals;
  DistinctPairs found;
  {
    ReleasedGil release;
    const PairSearch search{static_cast<std::uint64_t>(h), threads, resolve_level(level),
                            most.value_or(kAnyNumber), [&] { return signals(); }};
    found = block_pairs(all, {partition, agreeing}, search);
    // Equal rows agree on every block, so the first one is theirs.
    expand(found, all.n, block == 0, search);
  }
  signals.raise();
  if (found.too_many) return std::nullopt;
  FoundPairs& pairs = found.pairs;
  return Columns{given<std::uint32_t>(pairs.a, pairs.size),
                 given<std::uint32_t>(pairs.b, pairs.size),
                 given<std::uint16_t>(pairs.distance, pairs.size)};
}

// a, b, distance; equal rows: first, row; how many pairs these are, at least; whether they are more than
// `most`, and left out
using AllColumns =
    std::tuple<Out<std::int64_t, 1>, Out<std::int64_t, 1>, Out<std::uint16_t, 1>,
               Out<std::int64_t, 1>, Out<std::int64_t, 1>, double, bool>;

AllColumns bind_all_pairs(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 2>& blocks,
                          std::size_t agreeing, int h, bool expanded, std::uint64_t most,
                          std::size_t threads, int level) {
  const PairRows all = rows_of(rows);
  const std::vector<Bits> partition = blocks_of(blocks, all.words);
  require(agreeing <= partition.size(), "agreeing: at most the number of blocks");
  require(h >= 0, "h: 0 or more");
  require(threads >= 1, "threads: 1 or more");
  Signals signals;
  DistinctPairs found;
  double wanted = 0;
  {
    ReleasedGil release;
    const PairSearch search{static_cast<std::uint64_t>(h), threads, resolve_level(level), most,
                            [&] { return signals(); }};
    found = all_pairs(all, partition, agreeing, search);
    wanted = expanded ? expand(found, all.n, true, search) : static_cast<double>(found.pairs.size);
    if (found.too_many) {
      wanted = std::max(wanted, static_cast<double>(most) + 1);
      found = {{}, {}, true};
    }
  }
  signals.raise();
  const std::size_t repeats = expanded ? 0 : found.equal.size();
  Fresh<std::int64_t> first(repeats);
  Fresh<std::int64_t> row(repeats);
  SortedPairs pairs;
  {
    ReleasedGil release;
    pairs = sorted_by_rows(std::move(found.pairs), all.n);
    if (!expanded) sort_equal(found.equal, all.n, first.data(), row.data());
  }
  return {given<std::int64_t>(pairs.a, pairs.size),
          given<std::int64_t>(pairs.b, pairs.size),
          given<std::uint16_t>(pairs.distance, pairs.size),
          first.release(), row.release(), wanted, found.too_many};
}

}  // namespace

void bind_pairs(nb::module_& m) {
  m.def("block_pairs", &bind_block_pairs, "rows"_a.noconvert(), "blocks"_a.noconvert(), "block"_a,
        "h"_a, "threads"_a = 1, "level"_a = -1, "most"_a = nb::none());
  m.def("all_pairs", &bind_all_pairs, "rows"_a.noconvert(), "blocks"_a.noconvert(), "agreeing"_a,
        "h"_a, "expanded"_a, "most"_a, "threads"_a = 1, "level"_a = -1);
}

}  // namespace simindex
