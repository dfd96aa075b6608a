// One document to its fingerprint and sums W: features, their weights, and the projection.
//
//   weight of a feature = c(tf) * idf      c is 1, tf, or 1 + ln tf;  idf is 1 unless learned
//
// in whole numbers: a count, or steps of 2^-12; a product of two stepped numbers is rounded back to
// steps. A feature that occurs tf times may be added tf times instead of once with tf times the
// weight, so only c = 1 and c = 1 + ln tf need a document's features counted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "features.hpp"
#include "idf.hpp"
#include "projection.hpp"

namespace simindex {

enum Counting : int { kOnce = 0, kOften = 1, kSublinear = 2 };

struct RecipePlan {
  FeatureChoice features;
  int counting = kOften;
  bool with_idf = false;
  IdfBuckets idf;
  std::span<const std::uint32_t> sublinear;  // step of tf, for 0 <= tf < size; beyond, of the last
  int projection = kSigns;
  std::span<const std::int16_t> quantiles;
  std::size_t words = 1;
  std::size_t min_features = 1;
};

// Where the result of one document goes.
struct Row {
  std::uint64_t* fingerprint;  // (words)
  float* weights;              // (64 words)
  std::int64_t* features;      // distinct features, counted up to min_features at least
};

// The scratch of one thread.
class Fingerprinter {
 public:
  Fingerprinter(const RecipePlan& plan, int level)
      : plan_(plan),
        level_(level),
        reader_(plan.features, level),
        projection_(plan.projection, plan.words, plan.quantiles, level),
        unit_(plan.with_idf || plan.counting == kSublinear ? 1.0 / kOneStep : 1.0) {}

  template <class Stopped>
  Reading text(const Text& text, const Row& row, Stopped&& stopped) {
    begin();
    const Reading reading = reader_.read(
        text, [this](std::span<const std::uint64_t> hashes) { add(hashes); }, stopped);
    if (reading == Reading::kDone) finish(row);
    return reading;
  }

  void units(const ReadyUnits& units, const Row& row) {
    begin();
    reader_.read(units, [this](std::span<const std::uint64_t> hashes) { add(hashes); });
    finish(row);
  }

  void hashes(std::span<const std::uint64_t> hashes, const Row& row) {
    begin();
    constexpr std::size_t kBlock = 2048;
    for (std::size_t i = 0; i < hashes.size(); i += kBlock) {
      add(hashes.subspan(i, std::min(kBlock, hashes.size() - i)));
    }
    finish(row);
  }

  void given(std::span<const std::uint64_t> hashes, std::span<const double> weights,
             const Row& row);

  std::size_t invalid_at() const { return reader_.invalid_at(); }

 private:
  void begin();
  void add(std::span<const std::uint64_t> hashes);
  void finish(const Row& row);

  RecipePlan plan_;
  int level_;
  FeatureReader reader_;
  FeatureTable table_;
  Projection projection_;
  double unit_;
  bool any_ = false;
  std::vector<std::uint64_t> weights_;
};

}  // namespace simindex
