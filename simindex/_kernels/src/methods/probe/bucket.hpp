// From a place in the header directory to the rows of its bucket, and their comparison.
//
// Each level has, for a block of probes,
//
//     locate<kWords>(table, block, pending)     places -> row ranges; their lines go to `pending`
//     look<kWords>(table, block, slot, ...)     compares one bucket, as compare<kWords> does
//     look_long<kSieved>(table, rows, ...)      compares a range of rows of a long bucket
//     look_soon, for all slots, then settle     the same for all matches, in no order within a block
//
// Every offset read from the directory is clamped to 0 .. n, and an end below its start to the start.
//
// Levels 0 and 1 keep (lo, hi) and compare row by row. Levels 2 and 3 with 64-bit rows work in lines
// of 8 rows, because buckets are short and of unpredictable length (10 rows on average, so 2 lines):
// the first three lines are compared without a branch on the length, and the few that hold a row
// within h are looked at again, with the rows outside the bucket masked out. A line the bucket does not
// have is replaced by its last one: a load of a line that nobody asked for waits for memory even if
// all of it is masked (measured: PSM takes 1.7 times as long).
//
//     line 0            line 1            line 2
//     . . . r r r r r   r r r r . . . .   (line 1 again)
//           ^ lo               ^ hi
//     present = 0b00000000'00001111'11111000, lines = 1, rest = hi
//
// Only lines wholly inside the array are loaded so: a bucket in its first or last line, which may be
// partly someone else's, and one without rows gets the first whole line, present = 0, and all its rows
// are the rest.
//
// Whether a bucket holds a match is what the processor cannot foresee: look_soon notes it, and settle
// goes to the noted ones without a branch on the others (a third of all buckets: 80 of 270 ns a query).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"
#include "cpu/pending.hpp"
#include "methods/compare.hpp"
#include "methods/matches.hpp"
#include "methods/probe/probe.hpp"

namespace simindex {

// Probes of some consecutive queries. Those of one query stand `stride` slots apart.
struct ProbeBlock {
  static constexpr std::uint32_t kCapacity = 288;  // a multiple of 16, above 16 queries x 17 probes
  static constexpr std::uint32_t kLines = 8;  // lines of a bucket that are asked for
  static_assert(kLines * kCapacity <= Pending::kCapacity);

  struct Run {
    std::size_t query;
    std::uint32_t slot;  // of its first probe
    std::uint32_t count;
    std::uint32_t stride;
  };

  void clear() { slots = runs = 0; }
  bool full() const { return slots == kCapacity; }

  std::uint32_t slots = 0;
  std::uint32_t runs = 0;
  std::uint32_t place[kCapacity];    // in the directory: where the bucket's entry is
  std::uint32_t lo[kCapacity];       // first row
  std::uint32_t hi[kCapacity];       // behind the last row
  // Levels 2 and 3 with 64-bit rows:
  std::uint32_t line[kCapacity];     // first line, counted from the line rows[0] is in
  std::uint32_t lines[kCapacity];    // lines behind the first, at most 2
  std::uint32_t present[kCapacity];  // which of the 24 rows of three lines are the bucket's
  std::uint32_t rest[kCapacity];     // the first row that is not among them, or `hi`
  std::uint32_t suspect[kCapacity];  // not 0 if one of the 24 rows may be near; see look_soon
  Run run[kCapacity];
};

// Distance in the directory from a bucket's first row to its end.
inline std::size_t directory_step(const Table& table) {
  return std::size_t{1} << (table.directory_bits - table.header_bits);
}

// Whether rows are compared in lines, as levels 2 and 3 can: one line at least is whole.
inline bool in_lines(const Table& table) { return table.words == 1 && table.n >= 16; }

// Out of line: most calls find all rows verified.
[[gnu::noinline]] inline void touch_all(const Table& table, const ProbeBlock& block) {
  for (std::uint32_t slot = 0; slot < block.slots; ++slot)
    table.touch(block.lo[slot], block.hi[slot]);
}

// Before the rows of located probes are read.
SIMINDEX_INLINE void touch(const Table& table, const ProbeBlock& block) {
  if (table.verified != nullptr && !table.verified->all()) [[unlikely]]
    touch_all(table, block);
}

// Some rows of a bucket.
struct RowRange {
  std::uint32_t lo;
  std::uint32_t hi;

  RowRange(const Table&, std::uint32_t first, std::uint32_t end) : lo(first), hi(end) {}
};

inline void locate_rows(const Table& table, ProbeBlock& block, Pending& pending) {
  const auto n = static_cast<std::uint32_t>(table.n);
  const std::size_t step = directory_step(table);
  const std::size_t row_bytes = table.words * sizeof(std::uint64_t);
  const auto base = reinterpret_cast<std::uintptr_t>(table.rows);
  pending.clear();
  for (std::uint32_t slot = 0; slot < block.slots; ++slot) {
    const std::size_t place = block.place[slot];
    const std::uint32_t lo = std::min(table.directory[place], n);
    const std::uint32_t hi = std::max(lo, std::min(table.directory[place + step], n));
    block.lo[slot] = lo;
    block.hi[slot] = hi;
    if (hi == lo) continue;
    const auto begin = (base + lo * row_bytes) / 64;
    const auto last = (base + hi * row_bytes - 1) / 64;
    pending.add(begin * 64);
    pending.add((begin + 1) * 64, begin < last);
    pending.add((begin + 2) * 64, begin + 1 < last);
    // A bucket longer than kLines is read in order, which `compare` sees to.
    for (auto line = begin + 3; line <= last && line < begin + ProbeBlock::kLines; ++line)
      pending.add(line * 64);
  }
}

// A probe whose bucket may hold a near row.
struct Noted {
  std::uint32_t probe;
  std::uint32_t bucket;
};

namespace portable {

template <int kWords>
inline void locate(const Table& table, ProbeBlock& block, Pending& pending) {
  locate_rows(table, block, pending);
}

template <int kWords, int kSieved, class Sink>
SIMINDEX_INLINE bool look(const Table& table, const ProbeBlock& block, std::uint32_t slot,
                          const std::uint64_t* query, const Sieve& sieve, std::int64_t number,
                          std::uint64_t h, bool first, Sink& out, std::uint64_t& compared) {
  return compare<kWords, kSieved>(table.rows, table.words, block.lo[slot], block.hi[slot], query,
                                  sieve, number, h, first, out, compared);
}

template <int kWords, int kSieved, class Sink>
SIMINDEX_INLINE void look_soon(const Table& table, ProbeBlock& block, std::uint32_t slot,
                               const std::uint64_t* query, const Sieve& sieve, std::int64_t number,
                               std::uint64_t h, Sink& out, std::uint64_t& compared) {
  look<kWords, kSieved>(table, block, slot, query, sieve, number, h, false, out, compared);
}

template <class QueryOf, class Sink>
SIMINDEX_INLINE void settle(const Table&, const ProbeBlock&, const QueryOf&, std::uint64_t, Sink&) {}

using LongRows = RowRange;

template <int kSieved, class Sink>
SIMINDEX_INLINE void look_long(const Table& table, const LongRows& rows, std::uint64_t word,
                               const Sieve& sieve, std::int64_t number, std::uint64_t h, Sink& out,
                               std::uint64_t& compared) {
  compare<1, kSieved, false>(table.rows, 1, rows.lo, rows.hi, &word, sieve, number, h, false, out,
                             compared);
}

template <int kSieved, class Probe>
SIMINDEX_INLINE std::uint32_t look_shared(const Table&, std::uint32_t, std::uint32_t, const Probe*,
                                          std::uint32_t probes, const Sieve&, std::uint64_t,
                                          Noted next, Noted* noted, std::uint32_t count) {
  for (std::uint32_t i = 0; i < probes; ++i, ++next.probe) noted[count++] = next;
  return count;
}

}  // namespace portable

#if SIMINDEX_X86
namespace avx2 {

template <int kWords>
inline void locate(const Table& table, ProbeBlock& block, Pending& pending) {
  locate_rows(table, block, pending);
}

template <int kWords, int kSieved, class Sink>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE bool look(const Table& table, const ProbeBlock& block,
                                               std::uint32_t slot, const std::uint64_t* query,
                                               const Sieve& sieve, std::int64_t number,
                                               std::uint64_t h, bool first, Sink& out,
                                               std::uint64_t& compared) {
  return compare<kWords, kSieved>(table.rows, table.words, block.lo[slot], block.hi[slot], query,
                                  sieve, number, h, first, out, compared);
}

template <int kWords, int kSieved, class Sink>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE void look_soon(const Table& table, ProbeBlock& block,
                                                    std::uint32_t slot, const std::uint64_t* query,
                                                    const Sieve& sieve, std::int64_t number,
                                                    std::uint64_t h, Sink& out,
                                                    std::uint64_t& compared) {
  look<kWords, kSieved>(table, block, slot, query, sieve, number, h, false, out, compared);
}

template <class QueryOf, class Sink>
SIMINDEX_INLINE void settle(const Table&, const ProbeBlock&, const QueryOf&, std::uint64_t, Sink&) {}

using LongRows = RowRange;

template <int kSieved, class Sink>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE void look_long(const Table& table, const LongRows& rows,
                                                    std::uint64_t word, const Sieve& sieve,
                                                    std::int64_t number, std::uint64_t h, Sink& out,
                                                    std::uint64_t& compared) {
  compare<1, kSieved, false>(table.rows, 1, rows.lo, rows.hi, &word, sieve, number, h, false, out,
                             compared);
}

template <int kSieved, class Probe>
SIMINDEX_INLINE std::uint32_t look_shared(const Table&, std::uint32_t, std::uint32_t, const Probe*,
                                          std::uint32_t probes, const Sieve&, std::uint64_t,
                                          Noted next, Noted* noted, std::uint32_t count) {
  for (std::uint32_t i = 0; i < probes; ++i, ++next.probe) noted[count++] = next;
  return count;
}

}  // namespace avx2

namespace avx512 {
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/probe/bucket.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512

namespace avx512_vpopcntdq {
#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512_VPOPCNTDQ
#include "methods/probe/bucket.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_vpopcntdq
#endif

}  // namespace simindex
