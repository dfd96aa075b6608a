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

// The shift of words of which word i occurs times(i) times.
template <class Times>
std::uint64_t shift_of(std::span<const std::uint64_t> steps, Times times,
                       std::vector<std::uint32_t>& scratch) {
  std::uint64_t n = kCommonWords;
  std::uint64_t common = kCommonWords;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    n += times(i);
    common += times(i) & (0 - is_common(steps[i]));
  }
  if (mean_is_common(common, n)) return 0;  // so most documents end

  // In tenths of a word: word j covers 10 j to 10 j + 10, and those from n to 3 n count.
  const std::uint64_t first = n / 10;
  const std::uint64_t last = (3 * n - 1) / 10;  // > first, as n > 10

  std::array<std::uint32_t, kBins> counts{};
  counts[bin_of(kOneStep)] = kCommonWords;
  for (std::size_t i = 0; i < steps.size(); ++i) counts[bin_of(steps[i])] += times(i);
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
  const auto take = [&](std::uint64_t step, std::uint32_t number) {
    const std::size_t bin = bin_of(step);
    sum += low < bin && bin < high ? number * step : 0;
    const std::uint32_t taken = number & (0 - static_cast<std::uint32_t>((bin == low) | (bin == high)));
    scratch[kept] = static_cast<std::uint32_t>(step);
    for (std::uint32_t again = 1; again < taken; ++again) {
      scratch[kept + again] = static_cast<std::uint32_t>(step);
    }
    kept += taken;
  };
  take(kOneStep, kCommonWords);
  for (std::size_t i = 0; i < steps.size(); ++i) take(steps[i], times(i));
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

}  // namespace

std::uint64_t idf_shift(std::span<const std::uint64_t> steps, std::span<const std::uint32_t> times,
                        std::vector<std::uint32_t>& scratch) {
  return shift_of(steps, [times](std::size_t i) { return times[i]; }, scratch);
}

std::uint64_t idf_shift(std::span<const std::uint64_t> steps, std::vector<std::uint32_t>& scratch) {
  return shift_of(steps, [](std::size_t) { return std::uint32_t{1}; }, scratch);
}

}  // namespace simindex
