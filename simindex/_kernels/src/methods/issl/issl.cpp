#include "methods/issl/issl.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "cpu/memory.hpp"
#include "cpu/workers.hpp"
#include "methods/compare.hpp"
#include "methods/scan/scan.hpp"
#include "methods/scan/top_k.hpp"

namespace simindex {
namespace {

constexpr std::size_t kManyQueries = 32;  // at a time, that share what the first one brings in

// What is compiled for each level.
struct Leaves {
  void (*distances)(const std::uint64_t* rows, std::size_t words, const std::uint32_t* of,
                    std::size_t count, const std::uint64_t* query, std::uint16_t* out);
  void (*scores)(const std::uint64_t* rows, std::size_t words, std::size_t count,
                 const std::uint64_t* query, int width, int max_error, std::uint16_t* out);
};

namespace portable_level {

std::uint64_t row_distance(const std::uint64_t* row, const std::uint64_t* query,
                           std::size_t words) {
  std::uint64_t bits = 0;
  for (std::size_t w = 0; w < words; ++w) bits += portable::popcount(row[w] ^ query[w]);
  return bits;
}

template <int kWidth>
std::uint64_t row_score(const std::uint64_t* row, const std::uint64_t* query, std::size_t words,
                        int max_error) {
  std::uint64_t score = 0;
  for (std::size_t w = 0; w < words; ++w) {
    std::uint64_t x = row[w] ^ query[w];
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    if constexpr (kWidth == 16) x = (x & 0x00ff00ff00ff00ffu) + ((x >> 8) & 0x00ff00ff00ff00ffu);
    for (int at = 0; at < 64; at += kWidth) {
      const int errors = static_cast<int>((x >> at) & 0xff);
      score += errors <= max_error ? static_cast<std::uint64_t>(kWidth - errors) : 0;
    }
  }
  return score;
}

#define SIMINDEX_LEVEL_TARGET
#include "methods/issl/issl.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace portable_level

#if SIMINDEX_X86
namespace avx2_level {

SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE std::uint64_t row_distance(const std::uint64_t* row,
                                                                const std::uint64_t* query,
                                                                std::size_t words) {
  std::uint64_t bits = 0;
  for (std::size_t w = 0; w < words; ++w)
    bits += static_cast<std::uint64_t>(__builtin_popcountll(row[w] ^ query[w]));
  return bits;
}

// Bits set in each byte.
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE __m256i byte_counts(__m256i x) {
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                         0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i low = _mm256_set1_epi8(0x0f);
  return _mm256_add_epi8(
      _mm256_shuffle_epi8(table, _mm256_and_si256(x, low)),
      _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi64(x, 4), low)));
}

template <int kWidth>
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE std::uint64_t row_score(const std::uint64_t* row,
                                                             const std::uint64_t* query,
                                                             std::size_t words, int max_error) {
  __m256i sums = _mm256_setzero_si256();  // four of 64 bits
  for (std::size_t w = 0; w < words; w += 4) {
    alignas(32) std::uint64_t part[4] = {};
    __m256i x;
    if (words - w >= 4) {
      x = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + w)),
                           _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + w)));
    } else {
      // What lies beyond the row counts as all bits different, which scores nothing.
      for (std::size_t i = 0; i < 4; ++i)
        part[i] = w + i < words ? row[w + i] ^ query[w + i] : ~std::uint64_t{0};
      x = _mm256_load_si256(reinterpret_cast<const __m256i*>(part));
    }
    __m256i errors = byte_counts(x);
    __m256i gains;
    if constexpr (kWidth == 8) {
      const __m256i beyond =
          _mm256_cmpgt_epi8(errors, _mm256_set1_epi8(static_cast<char>(max_error)));
      gains = _mm256_andnot_si256(beyond, _mm256_sub_epi8(_mm256_set1_epi8(8), errors));
    } else {
      errors = _mm256_maddubs_epi16(errors, _mm256_set1_epi8(1));
      const __m256i beyond =
          _mm256_cmpgt_epi16(errors, _mm256_set1_epi16(static_cast<short>(max_error)));
      gains = _mm256_andnot_si256(beyond, _mm256_sub_epi16(_mm256_set1_epi16(16), errors));
    }
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(gains, _mm256_setzero_si256()));
  }
  const __m128i pair =
      _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return static_cast<std::uint64_t>(
      _mm_cvtsi128_si64(_mm_add_epi64(pair, _mm_unpackhi_epi64(pair, pair))));
}

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX2
#include "methods/issl/issl.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx2_level

namespace avx512_level {

// Bits set in each byte.
SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE __m512i byte_counts(__m512i x) {
  const __m512i halves = _mm512_set1_epi8(0x0f);
  const __m512i counts = _mm512_set4_epi32(0x04030302, 0x03020201, 0x03020201, 0x02010100);
  return _mm512_add_epi8(
      _mm512_shuffle_epi8(counts, _mm512_and_si512(x, halves)),
      _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi16(x, 4), halves)));
}

SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE std::uint64_t row_distance(const std::uint64_t* row,
                                                                  const std::uint64_t* query,
                                                                  std::size_t words) {
  constexpr std::size_t kMostWords = 8 * 31;  // whose counts fit a byte
  __m512i sums = _mm512_setzero_si512();
  for (std::size_t part = 0; part < words; part += kMostWords) {
    const std::size_t end = std::min(words, part + kMostWords);
    __m512i bytes = _mm512_setzero_si512();
    std::size_t w = part;
    for (; end - w >= 8; w += 8)
      bytes = _mm512_add_epi8(
          bytes, byte_counts(_mm512_xor_si512(_mm512_loadu_si512(row + w),
                                              _mm512_loadu_si512(query + w))));
    if (w < end) {
      const __mmask8 present = avx512::lowest(static_cast<std::uint32_t>(end - w));
      bytes = _mm512_add_epi8(
          bytes, byte_counts(_mm512_xor_si512(_mm512_maskz_loadu_epi64(present, row + w),
                                              _mm512_maskz_loadu_epi64(present, query + w))));
    }
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(bytes, _mm512_setzero_si512()));
  }
  return avx512::total(sums);
}

template <int kWidth>
SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE std::uint64_t row_score(const std::uint64_t* row,
                                                               const std::uint64_t* query,
                                                               std::size_t words, int max_error) {
  const __m512i all = _mm512_set1_epi64(-1);
  __m512i sums = _mm512_setzero_si512();
  for (std::size_t w = 0; w < words; w += 8) {
    const __mmask8 present = avx512::lowest(static_cast<std::uint32_t>(words - w));
    // What lies beyond the row counts as all bits different, which scores nothing.
    const __m512i x = _mm512_mask_xor_epi64(all, present, _mm512_maskz_loadu_epi64(present, row + w),
                                            _mm512_maskz_loadu_epi64(present, query + w));
    __m512i errors = byte_counts(x);
    __m512i gains;
    if constexpr (kWidth == 8) {
      const __mmask64 within =
          _mm512_cmple_epu8_mask(errors, _mm512_set1_epi8(static_cast<char>(max_error)));
      gains = _mm512_maskz_sub_epi8(within, _mm512_set1_epi8(8), errors);
    } else {
      errors = _mm512_maddubs_epi16(errors, _mm512_set1_epi8(1));
      const __mmask32 within =
          _mm512_cmple_epu16_mask(errors, _mm512_set1_epi16(static_cast<short>(max_error)));
      gains = _mm512_maskz_sub_epi16(within, _mm512_set1_epi16(16), errors);
    }
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(gains, _mm512_setzero_si512()));
  }
  return avx512::total(sums);
}

#define SIMINDEX_LEVEL_TARGET SIMINDEX_TARGET_AVX512
#include "methods/issl/issl.inc"
#undef SIMINDEX_LEVEL_TARGET
}  // namespace avx512_level
#endif

Leaves leaves_of(int level) {
#if SIMINDEX_X86
  // Bits counted in lanes of 8 or 16 bits need the nibble table, also where VPOPCNTQ is to be had.
  if (level >= kAvx512) return avx512_level::kLeaves;
  if (level >= kAvx2) return avx2_level::kLeaves;
#endif
  (void)level;
  return portable_level::kLeaves;
}

// Memory that grows and keeps what it holds. From malloc: a call that follows few lists needs little of
// it, and gets what the call before gave back, without page faults.
template <class T>
class Growing {
 public:
  void reserve(std::size_t size) {
    if (size > size_) [[unlikely]]
      grow(size);
  }
  T* data() { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }

 private:
  [[gnu::noinline]] void grow(std::size_t size) {
    size = std::max(size, size_ + size_ / 2);
    void* moved = std::realloc(data_.get(), size * sizeof(T));
    if (moved == nullptr) throw std::bad_alloc();
    (void)data_.release();
    data_.reset(static_cast<T*>(moved));
    size_ = size;
  }

  Memory<T> data_;
  std::size_t size_ = 0;
};

// All values of w bits with at most max_error bits set, fewest bits first: the error array of [ISSL].
struct Errors {
  Errors(int width, int max_error) {
    static const Sorted eight(8), sixteen(16);
    const Sorted& sorted = width == 8 ? eight : sixteen;
    flips = sorted.values.data();
    bits = sorted.bits.data();
    upto = sorted.upto;
    size = upto[max_error];
  }
  const std::uint16_t* flips;
  const std::uint8_t* bits;  // set in each of them
  const std::size_t* upto;  // how many have so many bits or fewer
  std::size_t size;

 private:
  struct Sorted {
    explicit Sorted(int width) {
      for (int set = 0; set <= width; ++set) {
        for (std::uint32_t value = 0; value < std::uint32_t{1} << width; ++value)
          if (std::popcount(value) == set) values.push_back(static_cast<std::uint16_t>(value));
        upto[set] = values.size();
        bits.resize(values.size(), static_cast<std::uint8_t>(set));
      }
    }
    std::vector<std::uint16_t> values;
    std::vector<std::uint8_t> bits;
    std::size_t upto[17] = {};
  };
};

// Slices that are looked at: the first `full` with all errors, then one with fewer or none.
struct Visit {
  std::size_t full = 0;
  std::size_t more = 0;  // errors tried on slice `full`; 0 if it is not looked at
  std::size_t lists(const Errors& errors) const { return full * errors.size + more; }
};

enum class Followed { kAll, kTooMany, kDamaged };

// The row numbers of lists, in buckets of neighbouring rows: of one query, and of those kept before.
//
//   entry   (row within its bucket) << 5 | what the row's score grows by
//   pool    chunks of 32 values: which chunk of its bucket came before it, then 31 entries; a bucket of
//           a query is a chain of them, the last one not full
//   ends    (buckets, most queries) where in the pool each bucket of the queries kept ends
class Buckets {
 public:
  // Where rows of a bucket are compared with many queries, they should fit the second-level cache.
  Buckets(std::size_t n, std::size_t words, std::size_t most_kept)
      : n_(n), most_kept_(most_kept) {
    while (most_kept >= kManyQueries && shift_ > 8 &&
           (words * sizeof(std::uint64_t) << shift_) > kBucketBytes)
      --shift_;
    while ((n_ >> shift_) >= kMostBuckets) ++shift_;
    count_ = (n_ >> shift_) + 1;
    block_.resize(std::size_t{1} << shift_);
    fill_.resize(count_ + 1);
  }

  std::size_t count() const { return count_; }
  std::size_t kept() const { return kept_; }
  // What the pool takes.
  std::size_t bytes() const { return chunks_ * kChunk * sizeof(std::uint32_t); }

  // Forgets all queries.
  void clear() { kept_ = chunks_ = kept_chunks_ = most_entries_ = 0; }

  // Begins a query with an empty chunk for each bucket; one more of them takes what is out of range.
  // The query before is forgotten if it was not kept.
  void begin() {
    damaged = 0;
    chunks_ = kept_chunks_;
    pool_.reserve((chunks_ + count_ + 1) * kChunk);
    for (std::size_t b = 0; b <= count_; ++b, ++chunks_) {
      pool_[chunks_ * kChunk] = kNone;
      fill_[b] = static_cast<std::uint32_t>(chunks_ * kChunk + 1);
    }
  }

  SIMINDEX_INLINE void take(const std::uint32_t* number, const std::uint32_t* end,
                            std::uint32_t gain) {
    const std::uint32_t within = (std::uint32_t{1} << shift_) - 1;
    std::uint32_t* pool = pool_.data();
    std::uint32_t* const fills = fill_.data();
    const std::size_t count = count_, n = n_;
    const int shift = shift_;
    std::uint64_t beyond = 0;
    for (; number != end; ++number) {
      const std::uint32_t row = *number;
      beyond += row >= n;
      std::uint32_t& fill = fills[std::min<std::size_t>(row >> shift, count)];
      pool[fill] = (row & within) << 5 | gain;
      if (++fill % kChunk == 0) [[unlikely]]
        pool = next_chunk(fill);
    }
    damaged += beyond;
  }

  std::uint64_t damaged = 0;  // row numbers of the query that are out of range

  // Calls take(row, score) for each entry in bucket b of the query: for the first one of a row its
  // score, for others 0; in no order.
  template <class Take>
  SIMINDEX_INLINE void sum(std::size_t b, Take take) {
    std::uint16_t* const block = block_.data();
    const auto base = static_cast<std::uint32_t>(b << shift_);
    each_chunk(fill_[b], [&](const std::uint32_t* entries, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) {
        std::uint16_t& score = block[entries[i] >> 5];
        score = static_cast<std::uint16_t>(score + (entries[i] & 31));
      }
    });
    each_chunk(fill_[b], [&](const std::uint32_t* entries, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t row = entries[i] >> 5;
        const std::uint32_t score = block[row];
        block[row] = 0;
        take(base + row, score);
      }
    });
  }

  // Entries in bucket b of the query.
  std::size_t entries(std::size_t b) {
    std::size_t all = 0;
    each_chunk(fill_[b], [&](const std::uint32_t*, std::size_t size) { all += size; });
    return all;
  }

  // Keeps the query, which followed so many row numbers, as number kept() - 1.
  void keep(std::size_t followed) {
    most_entries_ = std::max(most_entries_, followed);
    ends_.reserve(count_ * most_kept_);
    for (std::size_t b = 0; b < count_; ++b) ends_[b * most_kept_ + kept_] = fill_[b];
    ++kept_;
    kept_chunks_ = chunks_;
  }

  // Entries of a query kept, in any of its buckets, at most.
  std::size_t most_entries() const { return most_entries_; }

  // Rows in bucket b of a query kept, one for each entry, written to `rows`; how many. Those of the
  // queries after it are asked for.
  SIMINDEX_INLINE std::size_t rows_of(std::size_t query, std::size_t b, std::uint32_t* rows) {
    constexpr std::size_t kAhead = 6;
    const auto base = static_cast<std::uint32_t>(b << shift_);
    const std::uint32_t* ends = ends_.data() + b * most_kept_;
    if (query + kAhead < kept_) {
      const std::uint32_t* chunk = pool_.data() + ends[query + kAhead] / kChunk * kChunk;
      __builtin_prefetch(chunk);
      __builtin_prefetch(chunk + kChunk / 2);
    }
    if (query + kAhead / 2 < kept_) {
      const std::uint32_t before = pool_[ends[query + kAhead / 2] / kChunk * kChunk];
      if (before != kNone) {
        __builtin_prefetch(pool_.data() + before * kChunk);
        __builtin_prefetch(pool_.data() + before * kChunk + kChunk / 2);
      }
    }
    std::size_t written = 0;
    each_chunk(ends[query], [&](const std::uint32_t* entries, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) rows[written + i] = base + (entries[i] >> 5);
      written += size;
    });
    return written;
  }

 private:
  static constexpr std::size_t kChunk = 32;
  static constexpr std::size_t kMostBuckets = 512;
  static constexpr std::size_t kBucketBytes = 1 << 18;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Gives a bucket whose chunk is full the next one; where the pool then is.
  [[gnu::noinline]] std::uint32_t* next_chunk(std::uint32_t& fill) {
    pool_.reserve((chunks_ + 1) * kChunk);
    pool_[chunks_ * kChunk] = static_cast<std::uint32_t>(fill / kChunk - 1);
    fill = static_cast<std::uint32_t>(chunks_++ * kChunk + 1);
    return pool_.data();
  }

  template <class Look>
  SIMINDEX_INLINE void each_chunk(std::size_t end, Look look) {
    std::size_t size = end % kChunk - 1;
    for (std::size_t chunk = end / kChunk; chunk != kNone; chunk = pool_[chunk * kChunk]) {
      look(pool_.data() + chunk * kChunk + 1, size);
      size = kChunk - 1;
    }
  }

  std::size_t n_;
  std::size_t most_kept_;
  int shift_ = 13;  // of a row number; 8 K rows have 16 KiB of scores, half the first-level cache
  std::size_t count_ = 0;
  std::vector<std::uint32_t> fill_;   // (count + 1,) where the query's next entry of a bucket goes
  std::vector<std::uint16_t> block_;  // scores of a bucket; 0 outside of `sum`
  Growing<std::uint32_t> pool_;
  std::size_t chunks_ = 0;
  Growing<std::uint32_t> ends_;
  std::size_t kept_ = 0;
  std::size_t kept_chunks_ = 0;
  std::size_t most_entries_ = 0;
};

// The row numbers of lists in their order.
class Listed {
 public:
  explicit Listed(std::size_t n) : n_(n) {}

  void clear() { size = damaged = 0; }
  SIMINDEX_INLINE void take(const std::uint32_t* number, const std::uint32_t* end, std::uint32_t) {
    const std::size_t count = static_cast<std::size_t>(end - number);
    rows.reserve(size + count);
    std::uint32_t* const to = rows.data() + size;
    std::uint64_t beyond = 0;
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = number[i];
      beyond += number[i] >= n_;
    }
    size += count;
    damaged += beyond;
  }

  Growing<std::uint32_t> rows;
  std::size_t size = 0;
  std::uint64_t damaged = 0;

 private:
  std::size_t n_;
};

std::uint32_t slice_of(const SliceTable& table, const std::uint64_t* query, std::size_t slice) {
  const std::size_t bit = slice * static_cast<std::size_t>(table.width);
  return static_cast<std::uint32_t>(query[bit / 64] << (bit % 64) >> (64 - table.width));
}

// Gives the lists of a query to into.take(first, end, w - e), or stops where they hold more than `most`
// numbers; `followed` counts them.
template <class Into>
Followed follow(const SliceTable& table, const std::uint64_t* query, const Errors& errors,
                const Visit& visit, std::uint64_t most, std::uint64_t& followed, Into& into) {
  constexpr std::size_t kRing = 64;
  constexpr std::size_t kStartsAhead = 48;  // lists between asking for a start and following
  constexpr std::size_t kListsAhead = 20;   // and between asking for a list and following it
  struct Visited {
    const std::uint32_t* start;
    const std::uint32_t* first;
    const std::uint32_t* end;
    const std::uint32_t* numbers;
    std::uint32_t gain;
  } ring[kRing];
  const std::size_t lists = visit.lists(errors);
  const std::size_t values = std::size_t{1} << table.width, n = table.n;
  const auto width = static_cast<std::uint32_t>(table.width);
  const std::uint32_t* starts = table.starts;
  const std::uint32_t* numbers = table.numbers;
  std::size_t slice = 0, flip = 0;
  std::uint32_t value = slice_of(table, query, 0);
  std::uint64_t all = 0;
  followed = 0;
  for (std::size_t i = 0; i < lists + kStartsAhead; ++i) {
    if (i < lists) {
      Visited& at = ring[i % kRing];
      at.start = starts + (value ^ errors.flips[flip]);
      at.numbers = numbers;
      at.gain = width - errors.bits[flip];
      __builtin_prefetch(at.start);
      if (++flip == errors.size) {
        flip = 0;
        starts += values + 1;
        numbers += n;
        if (++slice < table.slices) value = slice_of(table, query, slice);
      }
    }
    if (i >= kStartsAhead - kListsAhead && i - (kStartsAhead - kListsAhead) < lists) {
      Visited& at = ring[(i - (kStartsAhead - kListsAhead)) % kRing];
      const std::size_t end = std::min<std::size_t>(at.start[1], n);
      const std::size_t first = std::min<std::size_t>(at.start[0], end);
      at.first = at.numbers + first;
      at.end = at.numbers + end;
      all += end - first;
      if (all > most) return Followed::kTooMany;
      table.touch_numbers(at.first, end - first);
      // Most lists are of one to three lines.
      __builtin_prefetch(at.first);
      __builtin_prefetch(at.first + std::min<std::size_t>(16, end - first - (end > first)));
      __builtin_prefetch(at.end - (end > first));
    }
    if (i >= kStartsAhead) {
      const Visited& at = ring[(i - kStartsAhead) % kRing];
      const std::uint32_t* number = at.first;
      for (; at.end - number > 64; number += 64) {
        for (std::size_t line = 16; line <= 64; line += 16) __builtin_prefetch(number + 32 + line);
        into.take(number, number + 64, at.gain);
      }
      into.take(number, at.end, at.gain);
    }
  }
  followed = all;
  return into.damaged != 0 ? Followed::kDamaged : Followed::kAll;
}

// The rows of highest score, ties by lower row number. Rows come in groups, all of a group below those
// of the next.
//
//   key   (65535 - score) << 32 | row: the smallest are the best
class Best {
 public:
  explicit Best(std::size_t most) : most_(most) {}

  void begin() {
    size = 0;
    least = 0;
  }
  // Room for a group of at most so many rows, after those kept: where keys of its rows are written.
  std::uint64_t* group(std::size_t most) {
    keys_.reserve(size + most + 1);
    return keys_.data() + size;
  }
  static std::uint64_t key(std::uint32_t row, std::uint32_t score) {
    return std::uint64_t{0xffff - score} << 32 | row;
  }
  // After a group, whose keys end there.
  void end_group(const std::uint64_t* end) {
    size = static_cast<std::size_t>(end - keys_.data());
    if (size >= 4 * most_ + 1024) trim();
  }
  // All rows kept, at most `most`, by row number.
  const std::uint32_t* end() {
    trim();
    if (rows_.size() < size) rows_.resize(size);
    for (std::size_t i = 0; i < size; ++i) rows_[i] = static_cast<std::uint32_t>(keys_[i]);
    std::sort(rows_.data(), rows_.data() + size);
    return rows_.data();
  }

  std::size_t size = 0;
  std::uint32_t least = 0;  // score that a row of a later group needs

 private:
  void trim() {
    if (size < most_ || most_ == 0) return;
    std::uint64_t* keys = keys_.data();
    if (size > most_) std::nth_element(keys, keys + most_ - 1, keys + size);
    const std::uint64_t worst = size > most_ ? keys[most_ - 1] : *std::max_element(keys, keys + size);
    size = most_;
    least = static_cast<std::uint32_t>(0xffff - (worst >> 32)) + 1;
  }

  std::size_t most_;
  Growing<std::uint64_t> keys_;
  std::vector<std::uint32_t> rows_;
};

// Expected costs, in quarters of a nanosecond: only which way is taken depends on them.
constexpr std::uint64_t kListCost = 40;
constexpr std::uint64_t kNumberCost = 16;
constexpr std::uint64_t kWordCost = 3;

// Row numbers that may be followed for a query before its rows are compared instead.
std::uint64_t most_followed(const SliceTable& table, std::size_t lists) {
  const std::uint64_t by_rows = table.n * table.words * kWordCost;
  const std::uint64_t by_lists = lists * kListCost;
  if (by_lists >= by_rows) return 0;
  const std::uint64_t memory = std::max<std::uint64_t>(std::uint64_t{1} << 22, table.n / 2);
  return std::min((by_rows - by_lists) / kNumberCost, memory);
}

constexpr std::size_t kStreamRows = 4096;
constexpr std::size_t kSlab = 1024;  // rows whose scores are counted at a time

constexpr std::size_t kGroupBytes = std::size_t{32} << 20;
constexpr std::size_t kGroupQueries = 1024;

// One thread's part of top_slices.
class TopWorker {
 public:
  TopWorker(const SliceTable& table, const TopSearch& search, const Errors& errors,
            std::size_t together, std::uint64_t* ids, std::uint16_t* distances, std::uint32_t* rows)
      : table_(table), search_(search), errors_(errors), visit_{table.slices, 0},
        lists_(visit_.lists(errors)), many_(together >= kManyQueries),
        leaves_(leaves_of(search.level)), ids_(ids), distances_(distances), rows_(rows),
        buckets_(table.n, table.words, together), best_(search.rerank), listed_(table.n) {
    most_ = search.max_error == table.width ? 0 : most_followed(table, lists_);
    expected_ = lists_ * (table.n >> table.width);
  }

  // Queries begin .. end - 1.
  template <class Stopped>
  void answer(std::size_t begin, std::size_t end, Stopped stopped) {
    group_.clear();
    buckets_.clear();
    for (std::size_t q = begin; q < end && !stopped(); ++q) {
      counts.lists += lists_;
      const std::uint64_t* query = search_.queries + q * table_.words;
      std::uint64_t followed = 0;
      if (search_.rerank >= table_.n) {
        counts.scored += std::uint64_t{table_.n} * table_.slices;
        compare_all(q, query, stopped);
      } else if (most_ == 0) {
        score_rows(q, query, stopped);
      } else if (!many_ && expected_ <= search_.rerank) {
        listed_.clear();
        const Followed end_of =
            follow(table_, query, errors_, visit_, std::min<std::uint64_t>(most_, search_.rerank),
                   followed, listed_);
        counts.scored += followed;
        if (end_of == Followed::kTooMany)
          score_lists(q, query, stopped);
        else if (end_of == Followed::kDamaged)
          counts.damaged += listed_.damaged;
        else
          compare_listed(q, query);
      } else {
        score_lists(q, query, stopped);
      }
    }
    compare_group(stopped);
  }

  SliceCounts counts;

 private:
  bool dead(std::uint64_t row) const { return search_.dead != nullptr && search_.dead[row] != 0; }

  // Takes the nearest of some rows, of which the dead are left out.
  void compare(std::uint32_t* rows, std::size_t count, const std::uint64_t* query, TopK& top) {
    if (search_.dead != nullptr)
      count = static_cast<std::size_t>(
          std::remove_if(rows, rows + count, [&](std::uint32_t row) { return dead(row); }) - rows);
    compare_live(rows, count, query, top);
  }

  void compare_live(const std::uint32_t* rows, std::size_t count, const std::uint64_t* query,
                    TopK& top) {
    if (near_.size() < count) near_.resize(count);
    table_.touch_rows(rows, count);
    leaves_.distances(table_.rows, table_.words, rows, count, query, near_.data());
    for (std::size_t i = 0; i < count; ++i)
      if (near_[i] <= top.limit()) {
        table_.touch_id(rows[i]);
        top.insert(near_[i], table_.ids[rows[i]], rows[i]);
      }
    counts.compared += count;
  }

  void compare_listed(std::size_t q, const std::uint64_t* query) {
    TopK top(search_.k);
    for (std::size_t at = 0; at < listed_.size; at += kStreamRows)
      compare(listed_.rows.data() + at, std::min(kStreamRows, listed_.size - at), query, top);
    give(q, top);
  }

  // The rows of the group's queries, bucket by bucket.
  template <class Stopped>
  void compare_group(Stopped stopped) {
    std::vector<TopK> tops(group_.size(), TopK(search_.k));
    listed_.rows.reserve(buckets_.most_entries());
    for (std::size_t b = 0; b < buckets_.count() && !group_.empty(); ++b) {
      if (stopped()) return;
      for (std::size_t i = 0; i < group_.size(); ++i) {
        const std::size_t size = buckets_.rows_of(i, b, listed_.rows.data());
        compare(listed_.rows.data(), size, search_.queries + group_[i] * table_.words, tops[i]);
      }
    }
    for (std::size_t i = 0; i < group_.size(); ++i) give(group_[i], tops[i]);
    group_.clear();
    buckets_.clear();
  }

  template <class Stopped>
  void score_lists(std::size_t q, const std::uint64_t* query, Stopped stopped) {
    std::uint64_t followed = 0;
    buckets_.begin();
    const Followed end = follow(table_, query, errors_, visit_, most_, followed, buckets_);
    counts.scored += followed;
    if (end == Followed::kAll && followed <= search_.rerank) {
      group_.push_back(q);
      buckets_.keep(followed);
      if (buckets_.bytes() > kGroupBytes) compare_group(stopped);
      return;
    }
    if (end == Followed::kAll) {
      best_.begin();
      sum_buckets();
      compare_best(q, query);
    } else if (end == Followed::kDamaged) {
      counts.damaged += buckets_.damaged;
    }
    if (end == Followed::kTooMany) score_rows(q, query, stopped);
  }

  void compare_best(std::size_t q, const std::uint64_t* query) {
    TopK top(search_.k);
    const std::uint32_t* rows = best_.end();
    compare_live(rows, best_.size, query, top);
    give(q, top);
  }

  void sum_buckets() {
    for (std::size_t b = 0; b < buckets_.count(); ++b) {
      std::uint64_t* to = best_.group(buckets_.entries(b));
      const std::uint32_t least = std::max<std::uint32_t>(best_.least, 1);
      if (search_.dead == nullptr)
        buckets_.sum(b, [&to, least](std::uint32_t row, std::uint32_t score) {
          *to = Best::key(row, score);
          to += score >= least;
        });
      else
        buckets_.sum(b, [&to, least, this](std::uint32_t row, std::uint32_t score) {
          *to = Best::key(row, score);
          to += score >= least && !dead(row);
        });
      best_.end_group(to);
    }
  }

  template <class Stopped>
  void score_rows(std::size_t q, const std::uint64_t* query, Stopped stopped) {
    counts.scored += std::uint64_t{table_.n} * table_.slices;
    best_.begin();
    // With all errors a row that differs in every bit is listed too.
    const std::uint32_t lowest = search_.max_error == table_.width ? 0 : 1;
    for (std::size_t lo = 0; lo < table_.n; lo += kSlab) {
      if (lo % (64 * kSlab) == 0 && stopped()) return;
      const std::size_t count = std::min(kSlab, table_.n - lo);
      table_.touch_rows(lo, count);
      leaves_.scores(table_.rows + lo * table_.words, table_.words, count, query, table_.width,
                     search_.max_error, scores_);
      std::uint64_t* to = best_.group(count);
      const std::uint32_t least = std::max(best_.least, lowest);
      for (std::size_t i = 0; i < count; ++i) {
        *to = Best::key(static_cast<std::uint32_t>(lo + i), scores_[i]);
        to += scores_[i] >= least && !dead(lo + i);
      }
      best_.end_group(to);
    }
    compare_best(q, query);
  }

  template <class Stopped>
  void compare_all(std::size_t q, const std::uint64_t* query, Stopped stopped) {
    TopK top(search_.k);
    listed_.rows.reserve(kSlab);
    for (std::size_t lo = 0; lo < table_.n; lo += kSlab) {
      if (lo % (64 * kSlab) == 0 && stopped()) return;
      const std::size_t count = std::min(kSlab, table_.n - lo);
      for (std::size_t i = 0; i < count; ++i)
        listed_.rows[i] = static_cast<std::uint32_t>(lo + i);
      compare(listed_.rows.data(), count, query, top);
    }
    give(q, top);
  }

  void give(std::size_t q, TopK& top) {
    std::size_t to = q * search_.k;
    for (const TopK::Entry& entry : top.sorted()) {
      ids_[to] = entry.id;
      distances_[to] = entry.distance;
      rows_[to++] = entry.row;
    }
  }

  const SliceTable& table_;
  const TopSearch& search_;
  const Errors& errors_;
  Visit visit_;
  std::size_t lists_;
  bool many_;               // queries are answered together
  std::uint64_t most_;      // row numbers followed for a query
  std::uint64_t expected_;  // if those of lists are as many
  Leaves leaves_;
  std::uint64_t* ids_;
  std::uint16_t* distances_;
  std::uint32_t* rows_;
  Buckets buckets_;
  Best best_;
  Listed listed_;
  std::vector<std::size_t> group_;  // queries all of whose rows are to be compared
  std::vector<std::uint16_t> near_;
  std::uint16_t scores_[kSlab];
};

}  // namespace

SliceCounts top_slices(const SliceTable& table, const TopSearch& asked, std::uint64_t* ids,
                       std::uint16_t* distances, std::uint32_t* rows,
                       const std::function<bool()>& poll) {
  TopSearch search = asked;
  search.rerank = std::min(search.rerank, table.n);
  SliceCounts counts;
  std::fill_n(ids, search.m * search.k, ~std::uint64_t{0});
  std::fill_n(distances, search.m * search.k, static_cast<std::uint16_t>(64 * table.words + 1));
  std::fill_n(rows, search.m * search.k, ~std::uint32_t{0});
  if (table.n == 0 || search.m == 0) return counts;
  const Errors errors(table.width, search.max_error);
  const std::size_t each = std::clamp<std::size_t>(
      (search.m + search.threads - 1) / search.threads, 1, kGroupQueries);
  split(
      (search.m + each - 1) / each, search.threads,
      [&] { return TopWorker(table, search, errors, each, ids, distances, rows); },
      [&](TopWorker& worker, std::size_t i, auto stopped) {
        worker.answer(i * each, std::min((i + 1) * each, search.m), stopped);
      },
      [&](TopWorker& worker) {
        counts.lists += worker.counts.lists;
        counts.scored += worker.counts.scored;
        counts.compared += worker.counts.compared;
        counts.damaged += worker.counts.damaged;
      },
      [&] { return counts.stopped = counts.stopped || poll(); });
  return counts;
}

namespace {

// Whether a slice of the two is within max_error.
bool shares_list(const std::uint64_t* row, const std::uint64_t* query, std::size_t words, int width,
                 int max_error) {
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  for (std::size_t w = 0; w < words; ++w)
    for (int at = 0; at < 64; at += width)
      if (std::popcount(((row[w] ^ query[w]) >> at) & mask) <= max_error) return true;
  return false;
}

// Slices that a row within h must share one list of, if it shares any: all of them, or by the pigeonhole
// principle so many that their errors, each increased by one, exceed h.
Visit needed(const SliceTable& table, const Errors& errors, std::uint64_t h, int max_error) {
  const std::uint64_t each = static_cast<std::uint64_t>(max_error) + 1;
  if (h >= each * table.slices) return {table.slices, 0};
  const std::uint64_t rest = (h + 1) % each;
  return {static_cast<std::size_t>((h + 1) / each), rest == 0 ? 0 : errors.upto[rest - 1]};
}

}  // namespace

SliceCounts slices_within(const SliceTable& table, const SliceSearch& search, Matches& matches,
                          const std::function<bool()>& poll) {
  SliceCounts counts;
  if (table.n == 0 || search.m == 0) return counts;
  const Leaves leaves = leaves_of(search.level);
  const Errors errors(table.width, search.max_error);
  const Visit visit = needed(table, errors, search.h, search.max_error);
  const bool all = search.h < (static_cast<std::uint64_t>(search.max_error) + 1) * table.slices;
  const std::size_t lists = visit.lists(errors);
  // A row that differs in every bit is in a list of w errors, but gains nothing there.
  const std::uint64_t most =
      search.max_error == table.width ? 0 : most_followed(table, lists);
  Buckets buckets(table.n, table.words, 0);
  Growing<std::uint32_t> rows;
  std::vector<std::uint16_t> distances;
  std::vector<std::uint64_t> near;  // row << 16 | distance
  for (std::size_t q = 0; q < search.m; ++q) {
    if ((counts.stopped = poll())) return counts;
    const std::uint64_t* query = search.queries + q * table.words;
    const auto number = static_cast<std::int64_t>(q);
    counts.lists += lists;
    Followed end = Followed::kTooMany;
    std::uint64_t followed = 0;
    if (most != 0) {
      buckets.begin();
      end = follow(table, query, errors, visit, most, followed, buckets);
      counts.scored += followed;
    }
    if (end == Followed::kDamaged) {
      counts.damaged += buckets.damaged;
      continue;
    }
    bool done = false;
    if (end == Followed::kTooMany) {
      constexpr std::size_t kPart = 1 << 16;
      for (std::size_t lo = 0; lo < table.n && !done; lo += kPart) {
        if (lo != 0 && (counts.stopped = poll())) return counts;
        const std::uint64_t* from = table.rows + lo * table.words;
        table.touch_rows(lo, std::min(kPart, table.n - lo));
        const Found found = scan(from, std::min(kPart, table.n - lo), table.words,
                                 Search{query, 1, search.h, all && search.first}, search.level);
        counts.compared += found.compared;
        for (std::size_t i = 0; i < found.matches.size && !done; ++i) {
          const std::uint32_t row = found.matches.row[i];
          if (!all && !shares_list(from + row * table.words, query, table.words, table.width,
                                   search.max_error))
            continue;
          matches.push(number, static_cast<std::uint32_t>(lo) + row, found.matches.distance[i]);
          done = search.first;
        }
      }
      continue;
    }
    for (std::size_t b = 0; b < buckets.count() && !done; ++b) {
      const std::size_t entries = buckets.entries(b);
      rows.reserve(entries + 1);
      std::uint32_t* to = rows.data();
      buckets.sum(b, [&to](std::uint32_t row, std::uint32_t score) {
        *to = row;
        to += score != 0;
      });
      const std::size_t size = static_cast<std::size_t>(to - rows.data());
      if (distances.size() < size) distances.resize(size);
      table.touch_rows(rows.data(), size);
      leaves.distances(table.rows, table.words, rows.data(), size, query, distances.data());
      counts.compared += size;
      near.clear();
      for (std::size_t i = 0; i < size; ++i)
        if (distances[i] <= search.h)
          near.push_back(std::uint64_t{rows[i]} << 16 | distances[i]);
      std::sort(near.begin(), near.end());
      for (const std::uint64_t one : near) {
        matches.push(number, static_cast<std::uint32_t>(one >> 16), one & 0xffff);
        if ((done = search.first)) break;
      }
    }
  }
  return counts;
}

}  // namespace simindex
