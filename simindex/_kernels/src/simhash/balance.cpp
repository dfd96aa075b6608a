#include "simhash/balance.hpp"

#include <array>

namespace simindex {
namespace {

// Words are counted by bins of steps, so only those at the two ends of the mean are put in order.
constexpr std::size_t kBins = 512;
constexpr int kBinBits = 8;  // the bins reach to an idf of 32

std::size_t bin_of(std::uint64_t step) { return std::min<std::uint64_t>(step >> kBinBits, kBins - 1); }

// 1 for the idf of a word that half of the documents have, or more common.
std::uint64_t is_common(std::uint64_t step) { return (step - (kOneStep + kHalf + 1)) >> 63; }

// Whether so many of n words are as common, that the mean is, too.
bool mean_is_common(std::uint64_t common, std::uint64_t n) { return 10 * common >= 3 * n; }

}  // namespace

std::uint64_t idf_shift(std::span<const std::uint64_t> steps, std::span<const std::uint32_t> times,
                        std::vector<std::uint64_t>& all, std::vector<std::uint32_t>& scratch) {
  std::uint64_t n = kCommonWords;
  std::uint64_t common = kCommonWords;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    n += times[i];
    common += times[i] & (0 - is_common(steps[i]));
  }
  if (mean_is_common(common, n)) return 0;
  all.clear();
  for (std::size_t i = 0; i < steps.size(); ++i) all.insert(all.end(), times[i], steps[i]);
  return idf_shift(all, scratch);
}

std::uint64_t idf_shift(std::span<const std::uint64_t> steps, std::vector<std::uint32_t>& scratch) {
  const std::uint64_t n = steps.size() + kCommonWords;
  std::uint64_t common = kCommonWords;
  for (const std::uint64_t step : steps) common += is_common(step);
  if (mean_is_common(common, n)) return 0;  // so most documents end

  // In tenths of a word: word j covers 10 j to 10 j + 10, and those from n to 3 n count.
  const std::uint64_t first = n / 10;
  const std::uint64_t last = (3 * n - 1) / 10;  // > first, as n > 10

  std::array<std::uint32_t, kBins> counts{};
  counts[bin_of(kOneStep)] = kCommonWords;
  for (const std::uint64_t step : steps) ++counts[bin_of(step)];
  std::size_t low = 0;
  std::uint64_t before = 0;  // words in lower bins
  for (; before + counts[low] <= first; ++low) before += counts[low];
  std::size_t high = low;
  std::uint64_t through = before + counts[low];
  while (through <= last) through += counts[++high];
  const std::uint64_t between = high == low ? 0 : through - counts[high] - before - counts[low];

  // Words of the bins between are added up. Those of the first and last bin are collected, in a
  // buffer with room for one more than there are.
  scratch.resize(through - before - between + 1);
  std::size_t kept = 0;
  std::uint64_t sum = 0;
  const auto take = [&](std::uint64_t step) {
    const std::size_t bin = bin_of(step);
    sum += low < bin && bin < high ? step : 0;
    scratch[kept] = static_cast<std::uint32_t>(step);
    kept += (bin == low) | (bin == high);
  };
  for (std::size_t i = 0; i < kCommonWords; ++i) take(kOneStep);
  for (const std::uint64_t step : steps) take(step);
  std::sort(scratch.begin(), scratch.begin() + static_cast<std::ptrdiff_t>(kept));

  const std::size_t begin = first - before;
  const std::size_t end = last - before - between;
  for (std::size_t place = begin; place <= end; ++place) sum += scratch[place];
  sum = 10 * sum - (n - 10 * first) * scratch[begin] - (10 * last + 10 - 3 * n) * scratch[end];
  const std::uint64_t mean = (sum + n) / (2 * n);
  if (mean <= kOneStep + kHalf) return 0;
  const std::uint64_t rarer = mean - kOneStep;
  return std::min(rarer, 2 * (rarer - kHalf));
}

}  // namespace simindex
