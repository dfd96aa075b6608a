// Row numbers in buckets of neighbouring rows, so that what is done with them stays in a cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/growing.hpp"
#include "cpu/levels.hpp"

namespace simindex {

inline constexpr std::size_t kManyQueries = 32;  // at a time, that share what the first one brings in

// The row numbers of lists, in buckets of neighbouring rows: of one query, and of those kept before.
//
//   entry   (row within its bucket) << 5 | what the row's score grows by
//   pool    chunks of 32 values: which chunk of its bucket came before it, then 31 entries; a bucket of
//           a query is a chain of them, the last one not full
//   ends    (buckets, most queries) where in the pool each bucket of the queries kept ends
class RowBuckets {
 public:
  // Where rows of a bucket are compared with many queries, they should fit the second-level cache.
  RowBuckets(std::size_t n, std::size_t words, std::size_t most_kept)
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

}  // namespace simindex
