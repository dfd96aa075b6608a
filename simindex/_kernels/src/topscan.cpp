#include "topscan.hpp"

#include <algorithm>

#include "compare.hpp"
#include "workers.hpp"

namespace simindex {
namespace {

constexpr std::size_t kSlabBytes = 32 * 1024;

void compare_slab(const TopRows& table, std::size_t lo, std::size_t hi,
                  const std::uint64_t* queries, std::vector<TopK>& tops) {
  for (std::size_t q = 0; q < tops.size(); ++q) {
    const std::uint64_t* query = queries + q * table.words;
    for (std::size_t row = lo; row < hi; ++row) {
      if (table.dead != nullptr && table.dead[row] != 0) continue;
      std::uint64_t bits = 0;
      for (std::size_t w = 0; w < table.words; ++w)
        bits += portable::popcount(table.rows[row * table.words + w] ^ query[w]);
      tops[q].insert(static_cast<std::uint32_t>(bits), table.ids[row],
                     static_cast<std::uint32_t>(row));
    }
  }
}

}  // namespace

std::vector<TopK> top_scan(const TopRows& table, const std::uint64_t* queries, std::size_t m,
                           std::size_t k, std::size_t threads, int level,
                           const std::function<bool()>& poll) {
  (void)level;
  std::vector<TopK> all(m, TopK(k));
  if (m == 0) return all;
  const std::size_t slab = std::max<std::size_t>(16, kSlabBytes / (8 * table.words));
  split((table.n + slab - 1) / slab, threads, [&] { return std::vector<TopK>(m, TopK(k)); },
        [&](std::vector<TopK>& tops, std::size_t i, auto&) {
          compare_slab(table, i * slab, std::min(table.n, (i + 1) * slab), queries, tops);
        },
        [&](const std::vector<TopK>& tops) {
          for (std::size_t q = 0; q < m; ++q) all[q].merge(tops[q]);
        },
        poll);
  return all;
}

}  // namespace simindex
