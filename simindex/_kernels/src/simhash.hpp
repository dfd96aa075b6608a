// From weighted features to sums W and fingerprints: [PSM] Algorithm 1, equation (2).
//
//   W_j = sum over features i of (2 phi_ij - 1) w_i  =  2 P_j - T
//
// with P_j the weight of the features whose bit j is set and T the weight of all. Weights are whole
// numbers (a count, or a count times an idf in steps of 2^-12), so sums are exact, the order of
// features does not matter, and every instruction set gives the same bits.
//
// A feature's hash is 64 bits. Word 0 of its phi is that hash and word i > 0 the i-th output of
// SplitMix64 started at it, so wide fingerprints need no second pass over the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace simindex {

enum Weighting : int { kBinary = 0, kTf = 1, kTfidf = 2 };

inline constexpr int kIdfStepBits = 12;

// idf of features in steps of 2^-12, by ascending hash.
struct IdfTable {
  std::span<const std::uint64_t> hashes;
  std::span<const std::uint32_t> steps;
  std::uint32_t unseen;

  // Interpolation search: hashes are uniform, so a million take about four looks. Falls back to
  // bisection after a few, hence never more than log2(n) + 8, whatever the table holds.
  std::uint32_t find(std::uint64_t hash) const;
};

class Simhash {
 public:
  Simhash(std::size_t words, int level);

  // Sums W of `hashes` with `weights` into sums(), column 0 = bit 63 of word 0.
  void sum(std::span<const std::uint64_t> hashes, std::span<const std::uint64_t> weights);

  std::span<const std::int64_t> sums() const { return sums_; }

 private:
  std::size_t words_;
  int level_;
  std::vector<std::int64_t> sums_;
};

}  // namespace simindex
