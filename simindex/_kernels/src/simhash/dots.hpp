// Products of the weights that two texts give to the features they have in common, added up.
#pragma once

#include <cstdint>
#include <span>

namespace simindex {

// The features of text i, each once, and their weights are those from starts[i] to starts[i + 1].
struct WeightedTexts {
  std::span<const std::int64_t> features;  // numbers, from 0
  std::span<const double> weights;
  std::span<const std::int64_t> starts;
};

// found[i] is that of the texts a[i] and b[i]. `weight_of` has a place for each feature and zeros
// in it, also afterwards. Pairs of one text a should follow each other: its weights are laid out
// once for them.
void dots(const WeightedTexts& texts, std::span<const std::int64_t> a,
          std::span<const std::int64_t> b, std::span<double> weight_of, std::span<double> found);

}  // namespace simindex
