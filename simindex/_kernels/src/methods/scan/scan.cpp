#include "methods/scan/scan.hpp"

#include <algorithm>
#include <vector>

#include "methods/compare.hpp"

namespace simindex {
namespace {

constexpr std::size_t kSlabBytes = 32 * 1024;

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
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/scan/scan.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level

namespace avx512_vpopcntdq_level {
using namespace avx512_vpopcntdq;
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "methods/scan/scan.inc"
#undef SIMINDEX_LEVEL_TARGET
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
  Found found{search.room};
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
