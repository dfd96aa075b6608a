#include "simhash/projection.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "simhash/bit_sums.hpp"

namespace simindex {
namespace {

// Blocks keep running sums in 32-bit lanes: kWeighed features below 2^23 cannot pass 2^31.
constexpr std::uint64_t kHeavy = std::uint64_t{1} << 23;

using Bits = std::span<const std::uint64_t>;

}  // namespace

Projection::Projection(int kind, std::size_t words, std::span<const std::int16_t> quantiles,
                       int level)
    : kind_(kind),
      words_(words),
      quantiles_(quantiles),
      level_(level),
      sums_(words * kColumns),
      some_(words * kColumns) {}

void Projection::clear() {
  given_ = false;
  total_ = 0;
  std::fill(sums_.begin(), sums_.end(), 0);
  std::fill(given_sums_.begin(), given_sums_.end(), 0.0);
}

// Calls visit(plus, minus, word) for every word: where v is +1 and, for ternary, where it is -1.
template <class Visit>
void Projection::visit_bits(std::span<const std::uint64_t> hashes, Visit visit) {
  std::array<std::uint64_t, kCounted> plus;
  std::array<std::uint64_t, kCounted> minus;
  const std::size_t n = hashes.size();
  for (std::size_t word = 0; word < words_; ++word) {
    if (kind_ == kSigns) {
      draw(hashes.data(), n, word, plus.data(), level_);
      visit(Bits(plus.data(), n), Bits(), word);
      continue;
    }
    draw(hashes.data(), n, 3 * word + 1, plus.data(), level_);
    draw(hashes.data(), n, 3 * word + 2, minus.data(), level_);
    for (std::size_t i = 0; i < n; ++i) plus[i] &= minus[i];  // where v is not zero
    draw(hashes.data(), n, 3 * word, minus.data(), level_);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t sign = minus[i];
      minus[i] = plus[i] & ~sign;
      plus[i] &= sign;
    }
    visit(Bits(plus.data(), n), Bits(minus.data(), n), word);
  }
}

void Projection::add(std::span<const std::uint64_t> hashes, std::uint64_t weight) {
  if (kind_ == kGaussian) {
    std::array<std::uint64_t, kCounted> equal;
    equal.fill(weight);
    for (std::size_t i = 0; i < hashes.size(); i += kCounted) {
      const auto some = hashes.subspan(i, std::min(kCounted, hashes.size() - i));
      add_quantiles(some, equal.data(), sums_.data());
    }
    return;
  }
  const auto factor = static_cast<std::int64_t>(weight);
  total_ += factor * static_cast<std::int64_t>(hashes.size());
  for (std::size_t i = 0; i < hashes.size(); i += kCounted) {
    add_some(hashes.subspan(i, std::min(kCounted, hashes.size() - i)), factor);
  }
}

void Projection::add(std::span<const std::uint64_t> hashes,
                     std::span<const std::uint64_t> weights) {
  if (kind_ == kGaussian) {
    return add_quantiles(hashes, weights.data(), sums_.data());
  }
  for (const std::uint64_t weight : weights) total_ += static_cast<std::int64_t>(weight);
  for (std::size_t i = 0; i < hashes.size(); i += kWeighed) {
    const std::size_t n = std::min(kWeighed, hashes.size() - i);
    add_some(hashes.subspan(i, n), weights.subspan(i, n));
  }
}

// At most kCounted.
void Projection::add_some(std::span<const std::uint64_t> hashes, std::int64_t factor) {
  std::fill(some_.begin(), some_.end(), 0);
  if (kind_ == kSigns) {
    count_draws(hashes.data(), hashes.size(), words_, some_.data(), level_);
  } else {
    visit_bits(hashes, [this, factor](Bits plus, Bits minus, std::size_t word) {
      std::array<std::int32_t, kColumns> down{};
      count_bits(minus.data(), minus.size(), down.data(), level_);
      add_multiples(down.data(), kColumns, -factor, sums_.data() + kColumns * word, level_);
      count_bits(plus.data(), plus.size(), some_.data() + kColumns * word, level_);
    });
  }
  add_multiples(some_.data(), some_.size(), factor, sums_.data(), level_);
}

// At most kWeighed.
void Projection::add_some(std::span<const std::uint64_t> hashes,
                          std::span<const std::uint64_t> weights) {
  const std::size_t n = hashes.size();
  std::array<std::int32_t, kWeighed> light;
  std::uint64_t most = 0;
  for (const std::uint64_t weight : weights) most |= weight;
  for (std::size_t i = 0; i < n; ++i) light[i] = static_cast<std::int32_t>(weights[i]);
  for (std::size_t i = 0; most >= kHeavy && i < n; ++i) {
    if (weights[i] < kHeavy) continue;
    light[i] = 0;
    add_heavy(hashes[i], static_cast<std::int64_t>(weights[i]));
  }
  std::fill(some_.begin(), some_.end(), 0);
  if (kind_ == kSigns) {
    weigh_draws(hashes.data(), light.data(), n, words_, some_.data(), level_);
  } else {
    visit_bits(hashes, [this, &light](Bits plus, Bits minus, std::size_t word) {
      std::array<std::int32_t, kColumns> down{};
      weigh_bits(minus.data(), light.data(), minus.size(), down.data(), level_);
      add_multiples(down.data(), kColumns, -1, sums_.data() + kColumns * word, level_);
      weigh_bits(plus.data(), light.data(), plus.size(), some_.data() + kColumns * word, level_);
    });
  }
  add_multiples(some_.data(), some_.size(), 1, sums_.data(), level_);
}

// One whose weight a lane of 32 bits may not hold.
void Projection::add_heavy(std::uint64_t hash, std::int64_t weight) {
  visit_bits(std::span(&hash, 1), [this, weight](Bits plus, Bits minus, std::size_t word) {
    std::int64_t* const sums = sums_.data() + kColumns * word;
    for (std::size_t j = 0; j < kColumns; ++j) {
      if ((plus[0] >> j) & 1) sums[j] += weight;
      if (!minus.empty() && ((minus[0] >> j) & 1)) sums[j] -= weight;
    }
  });
}

void Projection::add(std::span<const std::uint64_t> hashes, std::span<const double> weights) {
  given_ = true;
  given_sums_.resize(words_ * kColumns);
  if (kind_ == kGaussian) return add_quantiles(hashes, weights.data(), given_sums_.data());
  for (std::size_t i = 0; i < hashes.size(); i += kCounted) {
    const std::size_t n = std::min(kCounted, hashes.size() - i);
    const double* const some = weights.data() + i;
    visit_bits(hashes.subspan(i, n), [this, some](Bits plus, Bits minus, std::size_t word) {
      double* const sums = given_sums_.data() + kColumns * word;
      for (std::size_t f = 0; f < plus.size(); ++f) {
        const std::uint64_t down = minus.empty() ? ~plus[f] : minus[f];
        for (std::size_t j = 0; j < kColumns; ++j) {
          const std::uint64_t bit = std::uint64_t{1} << (kColumns - 1 - j);
          sums[j] += (plus[f] & bit) != 0 ? some[f] : (down & bit) != 0 ? -some[f] : 0.0;
        }
      }
    });
  }
}

template <class Weight, class Sum>
void Projection::add_quantiles(std::span<const std::uint64_t> hashes, const Weight* weights,
                               Sum* sums) {
  for (std::size_t f = 0; f < hashes.size(); ++f) {
    const auto weight = static_cast<Sum>(weights[f]);
    for (std::size_t column = 0; column < words_ * kColumns; column += 4) {
      const std::uint64_t drawn = draw(hashes[f], column / 4);
      for (std::size_t i = 0; i < 4; ++i) {
        // Given sums are in the order of columns, others in that of bits.
        const std::size_t at = std::is_same_v<Sum, double> ? column + i : (column + i) ^ 63;
        sums[at] += weight * static_cast<Sum>(quantiles_[(drawn >> (16 * i)) & 0xffff]);
      }
    }
  }
}

void Projection::finish(double unit, std::size_t weighted_words, std::uint64_t* bits,
                        float* weights) const {
  if (kind_ == kGaussian) unit /= 1 << kQuantileStepBits;
  if (given_) return finish_given(unit, weighted_words, bits, weights);
  // W = 2 P - T is 0 or more where P is half of T, rounded up, or more.
  const std::int64_t least = kind_ == kSigns ? total_ - total_ / 2 : kind_ == kTernary ? 1 : 0;
  for (std::size_t word = 0; word < words_; ++word) {
    const std::int64_t* const sums = sums_.data() + kColumns * word;
    bits[word] = at_least(sums, least, level_);
    if (word >= weighted_words) continue;
    float* const out = weights + kColumns * word;
    for (std::size_t j = 0; j < kColumns; ++j) {
      const std::int64_t sum = sums[kColumns - 1 - j];
      out[j] = static_cast<float>(static_cast<double>(kind_ == kSigns ? 2 * sum - total_ : sum) * unit);
    }
  }
}

void Projection::finish_given(double unit, std::size_t weighted_words, std::uint64_t* bits,
                              float* weights) const {
  for (std::size_t word = 0; word < words_; ++word) {
    std::uint64_t signs = 0;
    for (std::size_t j = kColumns * word; j < kColumns * (word + 1); ++j) {
      const double sum = given_sums_[j];
      signs = (signs << 1) | (kind_ == kTernary ? sum > 0 : sum >= 0);
      if (word < weighted_words) weights[j] = static_cast<float>(sum * unit);
    }
    bits[word] = signs;
  }
}

}  // namespace simindex
