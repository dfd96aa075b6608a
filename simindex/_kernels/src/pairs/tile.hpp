// Compares words with one another, some hundred or thousand at a time, so that all stay in the cache.
//
//   group   . . . i r r r r r r r | r r . . . . . .      lines of 8 words behind each word i, as many as the
//                 |<--- line --->||<--- line --->|       first of 8 such words needs: their number is
//                                  group ends ^          foreseen, and what is behind the group masked out
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "methods/compare.hpp"

namespace simindex {

// Two places among words, first < second.
struct Candidate {
  std::uint32_t first;
  std::uint32_t second;
};

class Candidates {
 public:
  void clear() { found_.clear(); }
  const Candidate* begin() const { return found_.data(); }
  const Candidate* end() const { return found_.data() + found_.size(); }
  std::size_t size() const { return found_.size(); }

  // As a sink of `compare`.
  void take(std::int64_t first, std::uint32_t second, std::uint64_t, std::uint64_t) {
    found_.push_back({static_cast<std::uint32_t>(first), second});
  }

 private:
  std::vector<Candidate> found_;
};

constexpr std::uint32_t kTileRows = 1024;       // 8 KB beside as many
constexpr std::uint32_t kDirectRows = 512;      // groups of at most so many are compared directly
constexpr std::size_t kPaddingWords = 16;       // that may be read behind the last group
constexpr std::size_t kManyCandidates = 1 << 16;

// Some places of a group, with all those from `first` to `last` that are behind them.
struct Tile {
  std::uint32_t rows_begin;
  std::uint32_t rows_end;
  std::uint32_t first;
  std::uint32_t last;  // not included
};

struct Near {
  std::uint64_t h;
  Sieve sieve;  // as in compare.hpp
};

struct Comparing {
  // Adds the pairs (i, j) of places with rows_begin <= i < rows_end, first <= j < last and i < j whose
  // words are within h.
  void (*tile)(const std::uint64_t* words, const Tile& tile, const Near& near, Candidates& out);

  // The same of pairs within groups number `group` .. groups - 1 of at most `most` words, group i ending
  // where ends[i] says; stops after a group with which there are many candidates and returns the number
  // of the next.
  std::size_t (*groups)(const std::uint64_t* words, const std::uint32_t* ends, std::size_t group,
                        std::size_t groups, std::uint32_t most, const Near& near,
                        Candidates& out);
};

Comparing comparing(const Sieve& sieve, int level);

}  // namespace simindex
