#include "simhash/dots.hpp"

#include <cstddef>

namespace simindex {
namespace {

struct Places {
  std::size_t first, end;
};

Places places_of(const WeightedTexts& texts, std::int64_t text) {
  const auto at = static_cast<std::size_t>(text);
  return {static_cast<std::size_t>(texts.starts[at]),
          static_cast<std::size_t>(texts.starts[at + 1])};
}

std::size_t feature_at(const WeightedTexts& texts, std::size_t place) {
  return static_cast<std::size_t>(texts.features[place]);
}

}  // namespace

void dots(const WeightedTexts& texts, std::span<const std::int64_t> a,
          std::span<const std::int64_t> b, std::span<double> weight_of, std::span<double> found) {
  Places laid{0, 0};
  const auto clear = [&] {
    for (std::size_t i = laid.first; i < laid.end; ++i) weight_of[feature_at(texts, i)] = 0;
  };
  for (std::size_t pair = 0; pair < a.size(); ++pair) {
    if (pair == 0 || a[pair] != a[pair - 1]) {
      clear();
      laid = places_of(texts, a[pair]);
      for (std::size_t i = laid.first; i < laid.end; ++i) {
        weight_of[feature_at(texts, i)] = texts.weights[i];
      }
    }
    const Places other = places_of(texts, b[pair]);
    double sum = 0;
    for (std::size_t i = other.first; i < other.end; ++i) {
      sum += weight_of[feature_at(texts, i)] * texts.weights[i];
    }
    found[pair] = sum;
  }
  clear();
}

}  // namespace simindex
