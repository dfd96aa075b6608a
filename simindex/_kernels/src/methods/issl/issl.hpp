// Searches the slice lists of a table: top K by score and rerank, and all rows within h. [ISSL] 2, 3.
//
//   a row x:    | slice 0 | slice 1 | ... | slice s-1 |    each of w bits, 8 or 16, s w = 64 words
//   starts      (s, 2^w + 1)   list v of slice i is numbers[i][starts[i][v]] .. [starts[i][v+1] - 1]
//   numbers     (s, n)         row numbers, those of one list ascending
//
// The score of a row is the sum of w - e over its slices that differ from the query's in e <= max_error
// bits. It is found in one of two ways, which agree; the one taken is the one that costs less:
//
//   by lists   every list within max_error of each slice of the query is followed. Its row numbers are
//              thrown into buckets of neighbouring rows, and then the scores of one bucket after the
//              other are summed in a block that stays in the first-level cache. Memory is 4 bytes for
//              each row number followed and does not grow with n; a table of scores for all rows would
//              have to be cleared and read for each query, and be fetched from farther away.
//              Where no more are followed than are to be reranked, scores are not summed: all rows are
//              compared, of a query by itself in the order of the lists, of many queries bucket by
//              bucket, so that rows which several of them list are brought in once.
//   by rows    slices of all rows are compared with the query's, in order: where lists hold more than
//              about 2 numbers for each row and 16 words of width, this is faster.
//
// lists.hpp holds the lists of a query, row_buckets.hpp their buckets, best_rows.hpp the rows of highest
// score, scores.hpp distances and scores for each level; top.cpp and within.cpp search.
//
// A row number out of range is never followed: it is counted, and its query has no result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "methods/matches.hpp"
#include "storage/verified.hpp"

namespace simindex {

struct SliceTable {
  const std::uint64_t* rows = nullptr;  // (n, words)
  std::size_t n = 0;
  std::size_t words = 1;
  const std::uint64_t* ids = nullptr;      // (n,)
  const std::uint32_t* starts = nullptr;   // (slices, 2^width + 1), monotone from 0 to n
  const std::uint32_t* numbers = nullptr;  // (slices, n)
  int width = 16;                          // 8 or 16
  std::size_t slices = 0;
  // What the arrays are part of, if they are to be verified; `starts` have been.
  Verified* verified_rows = nullptr;
  Verified* verified_ids = nullptr;
  Verified* verified_numbers = nullptr;

  // Before they are read: some rows in order, rows by their numbers, which are there, and part of a list.
  void touch_rows(std::size_t first, std::size_t count) const {
    if (verified_rows != nullptr) verified_rows->touch(rows + first * words, count * words);
  }
  void touch_rows(const std::uint32_t* of, std::size_t count) const {
    if (verified_rows == nullptr || verified_rows->all()) return;
    for (std::size_t i = 0; i < count; ++i) touch_rows(of[i], 1);
  }
  void touch_id(std::uint32_t row) const {
    if (verified_ids != nullptr) verified_ids->touch(ids + row, 1);
  }
  void touch_numbers(const std::uint32_t* first, std::size_t count) const {
    if (verified_numbers != nullptr) verified_numbers->touch(first, count);
  }
};

struct SliceCounts {
  std::uint64_t lists = 0;    // looked into; all of a slice where rows were compared instead
  std::uint64_t scored = 0;   // row numbers followed, or slices of rows compared
  std::uint64_t compared = 0;  // rows in full
  std::uint64_t damaged = 0;   // row numbers out of range
  bool stopped = false;       // by the poll
};

struct TopSearch {
  const std::uint64_t* queries = nullptr;  // (m, words)
  std::size_t m = 0;
  std::size_t k = 1;
  int max_error = 0;                   // 0 .. width
  std::size_t rerank = 1;              // rows of the highest score whose distance is counted
  const std::uint8_t* dead = nullptr;  // (n,): not 0 where a row is not a candidate; or none
  std::size_t threads = 1;
  int level = 0;
};

// ids, distances, rows (m, k): of the `rerank` live rows of highest score, ties by lower row number, the
// k nearest distinct ids, by (distance, id). Only rows in a list that is looked at count, unless
// `rerank` is not less than n: then all do. Missing ones are 2^64 - 1, 64 words + 1 and 2^32 - 1.
// `poll` is called now and then, on the calling thread; when it returns true the search ends.
SliceCounts top_slices(const SliceTable& table, const TopSearch& search, std::uint64_t* ids,
                       std::uint16_t* distances, std::uint32_t* rows,
                       const std::function<bool()>& poll);

struct SliceSearch {
  const std::uint64_t* queries = nullptr;  // (m, words)
  std::size_t m = 0;
  std::uint64_t h = 0;
  int max_error = 0;
  bool first = false;  // of the rows of a query, the one of the lowest number
  int level = 0;
};

// Every row within h that has a slice within max_error of the query's, once, by (query, row). Where
// the slices are so many that every row within h has one, only as many are looked at as make sure.
SliceCounts slices_within(const SliceTable& table, const SliceSearch& search, Matches& matches,
                          const std::function<bool()>& poll);

}  // namespace simindex
