#include "simhash.hpp"

namespace simindex {

void Fingerprinter::begin() {
  any_ = false;
  if (table_.size() != 0) table_.clear();
  projection_.clear();
}

void Fingerprinter::add(std::span<const std::uint64_t> hashes) {
  any_ = any_ || !hashes.empty();
  if (plan_.counting != kOften) {
    for (const std::uint64_t hash : hashes) table_.add(hash);
    return;
  }
  for (std::size_t i = 0; i < hashes.size() && plan_.min_features > 1; ++i) {
    if (table_.size() >= plan_.min_features) break;
    table_.add(hashes[i]);
  }
  if (!plan_.with_idf) return projection_.add(hashes);
  weights_.resize(hashes.size());
  plan_.idf.find(hashes, weights_.data(), level_);
  projection_.add(hashes, weights_);
}

void Fingerprinter::finish(const Row& row) {
  if (plan_.counting != kOften && table_.size() != 0) {
    const std::span<const std::uint64_t> hashes = table_.hashes();
    if (plan_.counting == kOnce && !plan_.with_idf) {
      projection_.add(hashes);
    } else {
      weights_.assign(hashes.size(), kOneStep);
      if (plan_.with_idf) plan_.idf.find(hashes, weights_.data(), level_);
      if (plan_.counting == kSublinear) {
        const std::span<const std::uint32_t> counts = table_.counts();
        for (std::size_t i = 0; i < hashes.size(); ++i) {
          const std::size_t tf = std::min<std::size_t>(counts[i], plan_.sublinear.size() - 1);
          weights_[i] = (weights_[i] * plan_.sublinear[tf] + kOneStep / 2) >> kStepBits;
        }
      }
      projection_.add(hashes, weights_);
    }
  }
  const bool counted = plan_.counting != kOften || plan_.min_features > 1;
  *row.features = counted ? static_cast<std::int64_t>(table_.size()) : any_;
  projection_.finish(unit_, row.fingerprint, row.weights);
}

void Fingerprinter::given(std::span<const std::uint64_t> hashes, std::span<const double> weights,
                          const Row& row) {
  begin();
  for (const std::uint64_t hash : hashes) {
    if (table_.size() >= plan_.min_features) break;
    table_.add(hash);
  }
  projection_.add(hashes, weights);
  *row.features = static_cast<std::int64_t>(table_.size());
  projection_.finish(1.0, row.fingerprint, row.weights);
}

}  // namespace simindex
