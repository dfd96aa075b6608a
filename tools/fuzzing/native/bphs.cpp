// Permuted tables that do not belong together; and, what only a fault elsewhere could bring about, under
// rotations that are not a permutation, so that the distance of a row found again is another.
#include "methods/probe/bphs.hpp"

#include <vector>

#include "tables.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

namespace {

Array<Rotation> rotations(Input& in, std::size_t words) {
  Array<Rotation> made(in.in(1, 4));
  for (std::size_t i = 0; i < made.size; ++i)
    made[i] = {in.in(0, words - 1), in.in(0, words - 1), in.in(0, 63), in.word()};
  return made;
}

// Words moved on by `step` and turned by `left`, or back.
Array<Rotation> turned(std::size_t words, std::size_t step, std::size_t left, bool back) {
  Array<Rotation> made(words);
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t to = (i + step) % words;
    made[i] = back ? Rotation{to, i, (64 - left) % 64, ~std::uint64_t{0}}
                   : Rotation{i, to, left, ~std::uint64_t{0}};
  }
  return made;
}

}  // namespace

namespace {

int searched(Input in) {
  const std::size_t words = in.in(1, 3);
  const OwnTable own(in, words);
  const std::size_t m = in.in(0, 40);
  const Array<std::uint64_t> queries = in.words(m * words);
  const Search search{queries.data, m, in.in(0, 9) * in.in(1, 20), in.one_in(2)};
  std::vector<OwnTable> tables;
  std::vector<Array<Rotation>> moves;
  std::vector<Array<std::uint64_t>> masks;
  std::vector<PermutedTable> permuted;
  const std::size_t count = in.in(0, 3);
  const bool permutations = !in.one_in(4);
  tables.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    masks.push_back(in.words(in.in(1, 9)));
    masks.back()[0] = 0;
    masks.push_back(in.words(words));
    const std::span<const std::uint64_t> flips = masks[2 * i], header = masks[2 * i + 1];
    if (in.one_in(2)) {
      tables.emplace_back(in, words);
      const std::size_t step = in.in(0, words - 1), left = in.in(0, 63);
      moves.push_back(permutations ? turned(words, step, left, false) : rotations(in, words));
      const std::span<const Rotation> there = moves.back();
      moves.push_back(permutations ? turned(words, step, left, true) : rotations(in, words));
      permuted.push_back({tables.back().table, there, moves.back(), flips, header, in.in(0, 5)});
    } else {
      permuted.push_back({own.table, {}, {}, flips, header, in.in(0, 5)});
    }
  }
  const FoundAgain again = bphs(own.table, permuted, search, in.in(0, 20), in.level());
  // Rows of 64 bits that are equal are taken for neighbours, as they are in a table in order.
  const Matches& found = again.found.matches;
  for (std::size_t i = 0; i < found.size; ++i) {
    const auto query = static_cast<std::size_t>(found.query[i]);
    REQUIRE(query < m && found.row[i] < own.table.n && found.distance[i] <= search.h);
    if (permutations && (own.sorted || words > 1 || search.first))
      REQUIRE(found.distance[i] == distance(own.rows.data + found.row[i] * words,
                                            queries.data + query * words, words));
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    return searched({data, size});
  } catch (const DamagedChunk&) {
    return 0;
  }
}
