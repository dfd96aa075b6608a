// From a place in the header directory to the rows of its bucket, and their comparison.
//
// Each level has, for a block of probes,
//
//     locate<kWords>(table, block, pending)     places -> row ranges; their lines go to `pending`
//     look<kWords>(table, block, slot, ...)     compares one bucket, as compare<kWords> does
//
// Every offset read from the directory is clamped to 0 .. n, and an end below its start to the start.
//
// Levels 0 to 2 keep (lo, hi) and compare row by row. Level 3 with 64-bit rows works in cache lines
// of 8 rows, because buckets are short and of unpredictable length (10 rows on average, so 2 lines):
// the first three lines are compared without a branch on the length, rows outside the bucket masked
// out. A line the bucket does not have is replaced by its last one: a load of a line that nobody
// asked for waits for memory even if all of it is masked (measured: PSM takes 1.7 times as long).
//
//     line 0            line 1            line 2
//     . . . r r r r r   r r r r . . . .   (line 1 again, all masked)
//           ^ lo               ^ hi
//     present = 0b00000000'00001111'11111000, lines = 1
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compare.hpp"
#include "cpu.hpp"
#include "intrinsics.hpp"
#include "matches.hpp"
#include "pending.hpp"
#include "probe.hpp"

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
  std::uint32_t line[kCapacity];     // level 3: first line, counted from the line rows[0] is in
  std::uint32_t lines[kCapacity];    // level 3: lines behind the first, at most 2
  std::uint32_t present[kCapacity];  // level 3: which of the 24 rows of three lines are the bucket's
  Run run[kCapacity];
};

// Distance in the directory from a bucket's first row to its end.
inline std::size_t directory_step(const Table& table) {
  return std::size_t{1} << (table.directory_bits - table.header_bits);
}

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

namespace portable {

template <int kWords>
inline void locate(const Table& table, ProbeBlock& block, Pending& pending) {
  locate_rows(table, block, pending);
}

template <int kWords>
SIMINDEX_INLINE bool look(const Table& table, const ProbeBlock& block, std::uint32_t slot,
                          const std::uint64_t* query, std::int64_t number, std::uint64_t h,
                          bool first, Matches& out, std::uint64_t& compared) {
  return compare<kWords>(table.rows, table.words, block.lo[slot], block.hi[slot], query, number, h,
                         first, out, compared);
}

}  // namespace portable

#if SIMINDEX_X86
namespace avx2 {

template <int kWords>
inline void locate(const Table& table, ProbeBlock& block, Pending& pending) {
  locate_rows(table, block, pending);
}

template <int kWords>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE bool look(const Table& table, const ProbeBlock& block,
                                               std::uint32_t slot, const std::uint64_t* query,
                                               std::int64_t number, std::uint64_t h, bool first,
                                               Matches& out, std::uint64_t& compared) {
  return compare<kWords>(table.rows, table.words, block.lo[slot], block.hi[slot], query, number, h,
                         first, out, compared);
}

}  // namespace avx2

namespace avx512 {

// The line rows[0] stands in, and how many rows would fit before it.
SIMINDEX_INLINE std::uintptr_t first_line(const Table& table) {
  return reinterpret_cast<std::uintptr_t>(table.rows) & ~std::uintptr_t{63};
}
SIMINDEX_INLINE std::uint32_t rows_before(const Table& table) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(table.rows) / 8 % 8);
}

SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE void ask(Pending& pending, __m512i line, __mmask16 wanted,
                                                __m512i base) {
  const __m512i packed = _mm512_maskz_compress_epi32(wanted, line);
  const auto count = static_cast<unsigned>(__builtin_popcount(wanted));
  const __m512i low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(packed));
  const __m512i high = _mm512_cvtepu32_epi64(_mm512_maskz_extracti64x4_epi64(0xff, packed, 1));
  std::uintptr_t* tail = pending.tail();
  _mm512_storeu_si512(tail, _mm512_add_epi64(base, _mm512_slli_epi64(low, 6)));
  _mm512_storeu_si512(tail + 8, _mm512_add_epi64(base, _mm512_slli_epi64(high, 6)));
  pending.advance(count);
}

template <int kWords>
SIMINDEX_TARGET_AVX512_VPOPCNTDQ inline void locate(const Table& table, ProbeBlock& block,
                                          Pending& pending) {
  if constexpr (kWords != 1) {
    locate_rows(table, block, pending);
    return;
  }
  pending.clear();
  const __m512i n = _mm512_set1_epi32(static_cast<int>(table.n));
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i two = _mm512_set1_epi32(2);
  const __m512i base = _mm512_set1_epi64(static_cast<long long>(first_line(table)));
  const __m512i offset = _mm512_set1_epi32(static_cast<int>(rows_before(table)));
  const std::uint32_t* ends = table.directory + directory_step(table);
  for (std::uint32_t slot = 0; slot < block.slots; slot += 16) {
    const std::uint32_t left = block.slots - slot;
    const auto used = static_cast<__mmask16>(left < 16 ? (1u << left) - 1 : 0xffffu);
    const __m512i place = _mm512_maskz_loadu_epi32(used, block.place + slot);
    const __m512i lo = _mm512_min_epu32(
        n, _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), used, place, table.directory, 4));
    const __m512i hi = _mm512_max_epu32(
        lo, _mm512_min_epu32(
                n, _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), used, place, ends, 4)));
    const __m512i at = _mm512_add_epi32(lo, offset);
    const __m512i before = _mm512_and_si512(at, _mm512_set1_epi32(7));
    const __m512i end = _mm512_add_epi32(before, _mm512_sub_epi32(hi, lo));
    const __m512i line = _mm512_srli_epi32(at, 3);
    const __m512i lines = _mm512_srli_epi32(_mm512_sub_epi32(_mm512_max_epu32(end, one), one), 3);
    const __m512i present = _mm512_sub_epi32(
        _mm512_sllv_epi32(one, _mm512_min_epu32(end, _mm512_set1_epi32(24))),
        _mm512_sllv_epi32(one, before));
    _mm512_storeu_si512(block.lo + slot, lo);
    _mm512_storeu_si512(block.hi + slot, hi);
    _mm512_storeu_si512(block.line + slot, line);
    _mm512_storeu_si512(block.lines + slot, _mm512_min_epu32(lines, two));
    _mm512_storeu_si512(block.present + slot, present);
    ask(pending, line, _mm512_mask_cmplt_epu32_mask(used, lo, hi), base);
    ask(pending, _mm512_add_epi32(line, one), _mm512_mask_cmpge_epu32_mask(used, lines, one), base);
    ask(pending, _mm512_add_epi32(line, two), _mm512_mask_cmpge_epu32_mask(used, lines, two), base);
    for (std::uint32_t further = 3; further < ProbeBlock::kLines; ++further) {
      const __m512i number = _mm512_set1_epi32(static_cast<int>(further));
      const __mmask16 wanted = _mm512_mask_cmpge_epu32_mask(used, lines, number);
      if (wanted == 0) break;
      ask(pending, _mm512_add_epi32(line, number), wanted, base);
    }
  }
}

template <int kWords>
SIMINDEX_TARGET_AVX512_VPOPCNTDQ SIMINDEX_INLINE bool look(const Table& table, const ProbeBlock& block,
                                                 std::uint32_t slot, const std::uint64_t* query,
                                                 std::int64_t number, std::uint64_t h, bool first,
                                                 Matches& out, std::uint64_t& compared) {
  if constexpr (kWords != 1) {
    return compare<kWords>(table.rows, table.words, block.lo[slot], block.hi[slot], query, number,
                           h, first, out, compared);
  } else {
    const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(query[0]));
    const __m512i limit = _mm512_set1_epi64(static_cast<long long>(h));
    const std::uint32_t lo = block.lo[slot];
    const std::uint32_t hi = block.hi[slot];
    const std::uint32_t present = block.present[slot];
    const std::size_t lines = block.lines[slot];
    const auto* line = reinterpret_cast<const char*>(first_line(table)) +
                       std::size_t{block.line[slot]} * 64;
    const auto present_a = static_cast<__mmask8>(present);
    const auto present_b = static_cast<__mmask8>(present >> 8);
    const auto present_c = static_cast<__mmask8>(present >> 16);
    compared += hi - lo;
    const __mmask8 near_a = _mm512_mask_cmple_epu64_mask(
        present_a, distances(_mm512_maskz_load_epi64(present_a, line), wanted), limit);
    const __mmask8 near_b = _mm512_mask_cmple_epu64_mask(
        present_b,
        distances(_mm512_maskz_load_epi64(present_b, line + (lines + 1) / 2 * 64), wanted), limit);
    const __mmask8 near_c = _mm512_mask_cmple_epu64_mask(
        present_c, distances(_mm512_maskz_load_epi64(present_c, line + lines * 64), wanted), limit);
    const std::uint32_t start = block.line[slot] * 8 - rows_before(table);  // of line 0; may be < 0
    if (_kortestz_mask8_u8(_kor_mask8(near_a, near_b), near_c) == 0) [[unlikely]] {
      const std::uint64_t near = near_a | std::uint64_t{near_b} << 8 | std::uint64_t{near_c} << 16;
      if (record(table.rows, start, hi, near, query[0], number, first, out, compared)) return true;
    }
    if (hi - start > 24) [[unlikely]]
      return compare_words<true>(table.rows, start + 24, hi, query[0], number, h, first, out,
                                 compared);
    return false;
  }
}

}  // namespace avx512
#endif

}  // namespace simindex
