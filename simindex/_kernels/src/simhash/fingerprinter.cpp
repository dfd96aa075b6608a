#include "simhash/fingerprinter.hpp"

namespace simindex {

void Fingerprinter::begin() {
  any_ = false;
  if (table_.size() != 0) table_.clear();
  if (distinct_.size() != 0) distinct_.clear();
  projection_.clear();
  waiting_.clear();
  weights_.clear();
}

void Fingerprinter::add(Hashes hashes) {
  any_ = any_ || !hashes.empty();
  if (tabled()) {
    table_.add(hashes);
    if (plan_.counting != kBalanced) return;
  } else if (plan_.counted() > 1) {
    count(hashes);
  }
  if (!plan_.with_idf) return projection_.add(hashes);
  if (plan_.counting == kBalanced) {
    const std::size_t before = weights_.size();
    weights_.resize(before + hashes.size());
    plan_.idf.find(hashes, weights_.data() + before, level_);
    if (!tabled()) waiting_.insert(waiting_.end(), hashes.begin(), hashes.end());
    return;
  }
  weights_.resize(hashes.size());
  plan_.idf.find(hashes, weights_.data(), level_);
  projection_.add(hashes, weights_);
}

void Fingerprinter::add(Hashes hashes, std::span<const double> weights) {
  count(hashes);
  projection_.add(hashes, weights);
}

void Fingerprinter::add_blocks(Hashes hashes) {
  for (std::size_t i = 0; i < hashes.size(); i += kBlock) {
    add(hashes.subspan(i, std::min(kBlock, hashes.size() - i)));
  }
}

// Each feature once, with its weight for all of its occurrences.
void Fingerprinter::add_kept(const KeptFeatures& document, const Row& row,
                             const std::function<bool()>& stopped) {
  const std::size_t entries = document.entries.size();
  waiting_.resize(entries);
  weights_.resize(entries);
  times_.resize(entries);
  std::size_t n = 0;
  std::uint32_t before = UINT32_MAX;
  for (const std::uint32_t entry : document.entries) {
    const std::uint32_t feature = entry >> kTimesBits;
    const std::uint32_t times = entry & kMostTimes;
    if (feature == before) {
      times_[n - 1] += times;
      continue;
    }
    before = feature;
    waiting_[n] = document.hashes[feature];
    weights_[n] = document.steps[feature];
    times_[n++] = times;
  }
  const Hashes hashes = Hashes(waiting_).first(n);
  const std::span<std::uint64_t> weights = std::span(weights_).first(n);
  std::uint64_t shift = 0;
  if (plan_.counting == kBalanced) {
    shift = idf_shift(weights, std::span<const std::uint32_t>(times_).first(n), scratch_);
  }
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = (shift == 0 ? weights[i] : shifted(weights[i], shift)) * times_[i];
  }
  for (std::size_t start = 0; start < n && !stopped(); start += kBlock) {
    const std::size_t some = std::min(kBlock, n - start);
    projection_.add(hashes.subspan(start, some),
                    std::span<const std::uint64_t>(weights.subspan(start, some)));
  }
  *row.features = static_cast<std::int64_t>(n);
  projection_.finish(unit_, plan_.words, row.bits, row.weights);
}

void Fingerprinter::count(Hashes hashes) {
  if (plan_.sketch_words != 0) return distinct_.add(hashes);
  for (std::size_t i = 0; i < hashes.size() && distinct_.size() < plan_.counted(); ++i) {
    distinct_.add(hashes.subspan(i, 1));
  }
}

void Fingerprinter::finish_balanced(const std::function<bool()>& stopped) {
  const std::uint64_t shift = idf_shift(weights_, scratch_);
  if (shift != 0) {
    for (std::uint64_t& weight : weights_) weight = shifted(weight, shift);
  }
  for (std::size_t start = 0; start < waiting_.size() && !stopped(); start += kBlock) {
    const std::size_t n = std::min(kBlock, waiting_.size() - start);
    projection_.add(Hashes(waiting_).subspan(start, n),
                    std::span<const std::uint64_t>(weights_).subspan(start, n));
  }
}

// Most features of a text occur once. What the others weigh in addition is added apart: columns are counted
// in a fifth of the time that weights are added in.
void Fingerprinter::add_sublinear(Hashes hashes, std::span<const std::uint32_t> counts) {
  const std::uint64_t once = plan_.sublinear[1];
  projection_.add(hashes, once);
  waiting_.resize(hashes.size());
  weights_.resize(hashes.size());
  std::size_t more = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    waiting_[more] = hashes[i];
    weights_[more] =
        plan_.sublinear[std::min<std::size_t>(counts[i], plan_.sublinear.size() - 1)] - once;
    more += counts[i] != 1;
  }
  projection_.add(Hashes(waiting_).first(more),
                  std::span<const std::uint64_t>(weights_).first(more));
}

void Fingerprinter::finish(const Row& row, const std::function<bool()>& stopped) {
  std::uint64_t shift = 0;
  if (plan_.counting == kBalanced && tabled()) {
    shift = idf_shift(weights_, scratch_);
  } else if (plan_.counting == kBalanced) {
    finish_balanced(stopped);
  }
  const std::size_t counted_features = tabled() ? table_.size() : 0;
  for (std::size_t start = 0; start < counted_features && !stopped(); start += kBlock) {
    const std::size_t n = std::min(kBlock, counted_features - start);
    const Hashes hashes = table_.hashes().subspan(start, n);
    if (plan_.counting == kOnce && !plan_.with_idf) {
      projection_.add(hashes);
      continue;
    }
    if (plan_.counting == kSublinear && !plan_.with_idf) {
      add_sublinear(hashes, table_.counts().subspan(start, n));
      continue;
    }
    weights_.assign(n, kOneStep);
    if (plan_.with_idf) plan_.idf.find(hashes, weights_.data(), level_);
    const std::span<const std::uint32_t> counts = table_.counts().subspan(start, n);
    if (plan_.counting == kOften || plan_.counting == kBalanced) {
      for (std::size_t i = 0; i < n; ++i) weights_[i] = shifted(weights_[i], shift) * counts[i];
    }
    if (plan_.counting == kSublinear) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t tf = std::min<std::size_t>(counts[i], plan_.sublinear.size() - 1);
        weights_[i] = (weights_[i] * plan_.sublinear[tf] + kOneStep / 2) >> kStepBits;
      }
    }
    projection_.add(hashes, weights_);
  }
  const std::size_t counted = tabled() ? table_.size() : distinct_.size();
  *row.features = static_cast<std::int64_t>(tabled() || plan_.counted() > 1 ? counted : any_);
  projection_.finish(unit_, plan_.words, row.bits, row.weights);
}

void Fingerprinter::finish_given(const Row& row) {
  *row.features = static_cast<std::int64_t>(distinct_.size());
  projection_.finish(1.0, plan_.words, row.bits, row.weights);
}

}  // namespace simindex
