// One document to its fingerprint and sums W: features, their weights, and the projection.
//
//   weight of a feature = c(tf) * idf      c is 1, tf, or 1 + ln tf;  idf is 1 unless learned
//
// in whole numbers: a count, or steps of 2^-12; a product of two stepped numbers is rounded back to
// steps. A feature that occurs tf times may be added tf times instead of once with tf times the
// weight, so only c = 1 and c = 1 + ln tf need a document's features counted. Where idf is balanced
// (balance.hpp), c is tf, and features wait for the end of the document; without idf they need not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "simhash/balance.hpp"
#include "simhash/document_counts.hpp"
#include "simhash/features.hpp"
#include "simhash/idf.hpp"
#include "simhash/projection.hpp"

namespace simindex {

enum Counting : int { kOnce = 0, kOften = 1, kSublinear = 2, kBalanced = 3 };

struct RecipePlan {
  FeatureChoice features;
  int counting = kOften;
  bool with_idf = false;
  IdfBuckets idf;
  std::span<const std::uint32_t> sublinear;  // step of tf, for 0 <= tf < size; beyond, of the last
  int projection = kSigns;
  std::span<const std::int16_t> quantiles;
  std::size_t words = 1;         // of the fingerprint, whose sums are given out as W
  std::size_t sketch_words = 0;  // further bits of the same features
  std::size_t min_features = 1;

  // How far distinct features are counted, at least: a sketch is stored with their number.
  std::size_t counted() const { return sketch_words != 0 ? SIZE_MAX : min_features; }
};

// Where the result of one document goes.
struct Row {
  std::uint64_t* bits;     // (words + sketch_words)
  float* weights;          // (64 words)
  std::int64_t* features;  // distinct features: all with a sketch, else up to min_features at least
};

// A document whose features were kept when they were counted (document_counts.hpp): its entries, and of its
// table the hashes and, with idf, their steps. Entries are below the number of hashes.
struct KeptFeatures {
  std::span<const std::uint32_t> entries;
  std::span<const std::uint64_t> hashes;
  std::span<const std::uint32_t> steps;
};

// The scratch of one thread. `stopped()` is asked between blocks of features; after it said so, the
// row is not complete.
class Fingerprinter {
 public:
  using Hashes = std::span<const std::uint64_t>;
  static constexpr std::size_t kBlock = 2048;

  Fingerprinter(const RecipePlan& plan, int level)
      : plan_(plan),
        level_(level),
        reader_(plan.features, level),
        projection_(plan.projection, plan.words + plan.sketch_words, plan.quantiles, level),
        unit_(plan.with_idf || plan.counting == kSublinear ? 1.0 / kOneStep : 1.0) {}

  template <class Stopped>
  Reading text(const Text& text, const Row& row, Stopped&& stopped) {
    begin();
    const auto sink = [&](Hashes hashes) {
      if (!stopped()) add(hashes);
    };
    const Reading reading = reader_.read(text, sink, stopped);
    if (reading == Reading::kDone) finish(row, std::ref(stopped));
    return reading;
  }

  template <class Stopped>
  void units(const ReadyUnits& units, const Row& row, Stopped&& stopped) {
    begin();
    reader_.read(units, [&](Hashes hashes) {
      if (!stopped()) add(hashes);
    });
    finish(row, std::ref(stopped));
  }

  template <class Stopped>
  void hashes(Hashes hashes, const Row& row, Stopped&& stopped) {
    begin();
    for (std::size_t i = 0; i < hashes.size() && !stopped(); i += kBlock) {
      add(hashes.subspan(i, std::min(kBlock, hashes.size() - i)));
    }
    finish(row, std::ref(stopped));
  }

  template <class Stopped>
  void kept(const KeptFeatures& document, const Row& row, Stopped&& stopped) {
    begin();
    if (plan_.with_idf && !tabled()) return add_kept(document, row, std::ref(stopped));
    occurrences_.clear();
    for (const std::uint32_t entry : document.entries) {
      occurrences_.insert(occurrences_.end(), entry & kMostTimes,
                           document.hashes[entry >> kTimesBits]);
      if (occurrences_.size() < kBlock) continue;
      if (stopped()) return;
      add_blocks(occurrences_);
      occurrences_.clear();
    }
    add_blocks(occurrences_);
    finish(row, std::ref(stopped));
  }

  template <class Stopped>
  void given(Hashes hashes, std::span<const double> weights, const Row& row, Stopped&& stopped) {
    begin();
    for (std::size_t i = 0; i < hashes.size() && !stopped(); i += kBlock) {
      const std::size_t n = std::min(kBlock, hashes.size() - i);
      add(hashes.subspan(i, n), weights.subspan(i, n));
    }
    finish_given(row);
  }

  std::size_t invalid_at() const { return reader_.invalid_at(); }

 private:
  // Whether the table has every feature of the document. Of weights by idf a sum of one word takes
  // less than to look a feature up; with a sketch there are so many words that equal features are
  // better added at once: with 512 bits that takes 0.7 of the time. No sum changes.
  bool tabled() const {
    return plan_.counting == kOnce || plan_.counting == kSublinear ||
           (plan_.with_idf && plan_.sketch_words != 0);
  }
  void begin();
  void add(Hashes hashes);
  void add(Hashes hashes, std::span<const double> weights);
  void add_blocks(Hashes hashes);
  void add_kept(const KeptFeatures& document, const Row& row, const std::function<bool()>& stopped);
  void count(Hashes hashes);
  void add_sublinear(Hashes hashes, std::span<const std::uint32_t> counts);
  void finish_balanced(const std::function<bool()>& stopped);
  void finish(const Row& row, const std::function<bool()>& stopped);
  void finish_given(const Row& row);

  RecipePlan plan_;
  int level_;
  FeatureReader reader_;
  FeatureTable table_;
  FeatureSet distinct_;  // where the table has not every feature
  Projection projection_;
  double unit_;
  bool any_ = false;
  std::vector<std::uint64_t> weights_;
  std::vector<std::uint64_t> waiting_;  // hashes whose steps weights_ has
  std::vector<std::uint32_t> scratch_;
  std::vector<std::uint64_t> occurrences_;  // of kept features
  std::vector<std::uint32_t> times_;
};

}  // namespace simindex
