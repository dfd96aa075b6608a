#include "methods/scan/scan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "methods/compare.hpp"

namespace simindex {
namespace {

constexpr std::size_t kSlabBytes = 32 * 1024;

// Of rows of several words, the first ones, turned so that a line has one word of eight rows:
//
//   rows         a0 a1 a2 a3   b0 b1 b2 b3   ...   h0 h1 h2 h3
//   told_by = 2  a0 b0 c0 d0 e0 f0 g0 h0   a1 b1 c1 d1 e1 f1 g1 h1   ...
//
// So many words are turned that hardly a uniform row is within h in them: 5 deviations of their number
// of differing bits, 32 +- 4 a word. Only such rows are counted in full. At h = 31 one word in two is
// within h: a branch on the first word of each row took 5 ns, as it cannot be foreseen.
struct Slab {
  Slab(std::size_t words, std::uint64_t h) {
    while (told_by < words && !tells(told_by, h)) ++told_by;
    most = std::max<std::size_t>(8, kSlabBytes / (told_by * sizeof(std::uint64_t)) / 8 * 8);
    lines.resize(most * told_by);
  }

  static bool tells(std::size_t words, std::uint64_t h) {
    const auto few = static_cast<double>(words);
    return static_cast<double>(h) <= 32 * few - 20 * std::sqrt(few);
  }

  // Places behind the last row keep what they have.
  void fill(const std::uint64_t* rows, std::size_t first, std::size_t count, std::size_t words) {
    begin = static_cast<std::uint32_t>(first);
    size = count;
    for (std::size_t row = 0; row < count; ++row) {
      std::uint64_t* to = lines.data() + row / 8 * 8 * told_by + row % 8;
      for (std::size_t w = 0; w < told_by; ++w) to[8 * w] = rows[row * words + w];
    }
  }

  std::size_t told_by = 1;
  std::size_t most;         // rows, a multiple of 8
  std::uint32_t begin = 0;  // the first row
  std::size_t size = 0;
  std::vector<std::uint64_t> lines;
};

// Few queries near in one word are told faster row by row: they wait for memory.
constexpr std::size_t kSharedSlab = 16;

[[maybe_unused]] bool worth_lines(std::size_t words, const Search& search) {
  if (words == 1 || search.first) return false;
  return search.m >= kSharedSlab || !Slab::tells(1, search.h);
}


namespace portable_level {
using namespace portable;
#define SIMINDEX_LEVEL_TARGET
#include "methods/scan/scan.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {
using namespace avx2;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "methods/scan/scan.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {
using namespace avx512;
#define SIMINDEX_SCAN_LINES
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/scan/scan.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level

namespace avx512_vpopcntdq_level {
using namespace avx512_vpopcntdq;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "methods/scan/scan.inc"
#undef SIMINDEX_LEVEL_TARGET
#undef SIMINDEX_SCAN_LINES
}  // namespace avx512_vpopcntdq_level
#endif

// Stable counting sort of `from` by query, of which there are m.
Matches by_query(Matches& from, std::size_t m) {
  std::vector<std::size_t> place(m + 1);
  for (std::size_t i = 0; i < from.size; ++i) ++place[static_cast<std::size_t>(from.query[i]) + 1];
  for (std::size_t q = 0; q < m; ++q) place[q + 1] += place[q];
  Matches sorted;
  sorted.reserve(from.size);
  sorted.size = from.size;
  for (std::size_t i = 0; i < from.size; ++i) {
    const std::size_t to = place[static_cast<std::size_t>(from.query[i])]++;
    sorted.query[to] = from.query[i];
    sorted.row[to] = from.row[i];
    sorted.distance[to] = from.distance[i];
  }
  from.leave_room_to(sorted);
  return sorted;
}

}  // namespace

Found scan(const std::uint64_t* rows, std::size_t n, std::size_t words, const Search& search,
           int level) {
  Found found{search};
  if (n == 0 || search.m == 0) return found;
#if SIMINDEX_X86
  if (level >= kAvx512Vpopcntdq)
    avx512_vpopcntdq_level::scan_any(rows, n, words, search, found);
  else if (level >= kAvx512)
    avx512_level::scan_any(rows, n, words, search, found);
  else if (level >= kAvx2)
    avx2_level::scan_any(rows, n, words, search, found);
  else
#endif
    portable_level::scan_any(rows, n, words, search, found);
  (void)level;
  if (!std::is_sorted(found.matches.query, found.matches.query + found.matches.size))
    found.matches = by_query(found.matches, search.m);
  return found;
}

}  // namespace simindex
