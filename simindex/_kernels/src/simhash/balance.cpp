#include "simhash/balance.hpp"

namespace simindex {

std::uint64_t idf_shift(std::span<const std::uint64_t> steps, std::vector<std::uint32_t>& scratch) {
  const std::uint64_t n = steps.size() + kCommonWords;
  // Most documents end here: if so many words are as common, then so is the mean.
  std::uint64_t common = kCommonWords;
  for (const std::uint64_t step : steps) common += (step - (kOneStep + kHalf + 1)) >> 63;
  if (10 * common >= 3 * n) return 0;

  scratch.assign(kCommonWords, kOneStep);
  scratch.insert(scratch.end(), steps.begin(), steps.end());
  // In tenths of a word: word j covers 10 j to 10 j + 10, and those from n to 3 n count.
  const std::uint64_t first = n / 10;
  const std::uint64_t last = (3 * n - 1) / 10;
  const auto at = [&](std::uint64_t place) {
    return scratch.begin() + static_cast<std::ptrdiff_t>(place);
  };
  std::nth_element(at(0), at(first), scratch.end());
  std::nth_element(at(first + 1), at(last), scratch.end());  // last > first, as n > 10
  std::uint64_t sum = 0;
  for (std::uint64_t place = first; place <= last; ++place) sum += 10 * std::uint64_t{*at(place)};
  sum -= (n - 10 * first) * *at(first) + (10 * last + 10 - 3 * n) * *at(last);
  const std::uint64_t mean = (sum + n) / (2 * n);
  if (mean <= kOneStep + kHalf) return 0;
  const std::uint64_t rarer = mean - kOneStep;
  return std::min(rarer, 2 * (rarer - kHalf));
}

}  // namespace simindex
