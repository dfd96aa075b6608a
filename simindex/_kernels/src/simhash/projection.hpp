// From weighted features to sums W and fingerprints: [PSM] Algorithm 1, equations (2) and (4).
//
//   W_j = sum over features i of v_ij w_i
//
//   signs      v_ij = 2 phi_ij - 1     +1 where bit j of phi_i is set, else -1: Algorithm 1
//   gaussian   v_ij ~ N(0, 1)          equation (4), from a table of 65,536 quantiles in steps of 2^-12
//   ternary    +1 or -1 with chance 1/8 each, else 0; a sum of 0 gives a bit of 0 (TopSig)
//
// What v needs of chance comes from the feature's hash H: draw(0) = H and draw(i) = the i-th output of
// SplitMix64 started at H, so wide fingerprints need no second pass over the text:
//
//   signs      phi_i, word w  = draw(w)
//   ternary    word w: sign bits draw(3w), not zero where draw(3w + 1) and draw(3w + 2) have a bit
//   gaussian   column c: quantile number (16 bits) c mod 4, from the lowest, of draw(c / 4)
//
// Weights are whole numbers (a count, or steps of 2^-12), so sums are exact, neither the order of
// features nor the instruction set shows. Weights that a caller gives are added as doubles, one
// after the other in the order given, never fused, so they do not depend on the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace simindex {

enum ProjectionKind : int { kSigns = 0, kGaussian = 1, kTernary = 2 };

inline constexpr std::size_t kQuantiles = 65536;
inline constexpr int kQuantileStepBits = 12;

class Projection {
 public:
  // `quantiles` are kQuantiles steps for kGaussian, else not used.
  Projection(int kind, std::size_t words, std::span<const std::int16_t> quantiles, int level);

  void clear();
  void add(std::span<const std::uint64_t> hashes, std::uint64_t weight = 1);  // of each
  void add(std::span<const std::uint64_t> hashes, std::span<const std::uint64_t> weights);
  void add(std::span<const std::uint64_t> hashes, std::span<const double> weights);

  // All `words` of bits, and of the first `weighted_words` W in units of `unit`, column 0 = bit 63 of
  // word 0.
  void finish(double unit, std::size_t weighted_words, std::uint64_t* bits, float* weights) const;

 private:
  void add_some(std::span<const std::uint64_t> hashes, std::int64_t factor);
  void add_some(std::span<const std::uint64_t> hashes, std::span<const std::uint64_t> weights);
  void add_heavy(std::uint64_t hash, std::int64_t weight);
  template <class Weight, class Sum>
  void add_quantiles(std::span<const std::uint64_t> hashes, const Weight* weights, Sum* sums);
  void finish_given(double unit, std::size_t weighted_words, std::uint64_t* bits,
                    float* weights) const;
  template <class Visit>
  void visit_bits(std::span<const std::uint64_t> hashes, Visit visit);

  int kind_;
  std::size_t words_;
  std::span<const std::int16_t> quantiles_;
  int level_;
  bool given_ = false;              // sums are in given_sums_
  std::int64_t total_ = 0;          // kSigns: weight T of all features; sums_ hold P, and W = 2 P - T
  std::vector<std::int64_t> sums_;   // of bit j of word w: 64 w + j
  std::vector<std::int32_t> some_;   // the same of some features
  std::vector<double> given_sums_;  // column 0 first, as W has them
};

}  // namespace simindex
