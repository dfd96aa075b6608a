#include "features.hpp"

#include <algorithm>
#include <limits>

#include "murmur3.hpp"

namespace simindex {
namespace {

constexpr std::size_t kSmallestTable = 256;

}  // namespace

void FeatureTable::count(std::span<const std::uint8_t> text, int unit,
                         std::span<const std::uint8_t> sizes, std::uint32_t seed) {
  hashes_.clear();
  counts_.clear();
  resize_slots(kSmallestTable);
  find_units(text, unit);
  const std::size_t units = starts_.size();
  if (units == 0) return;
  if (units < sizes.front()) {
    add(murmur3_x64_128(text.data() + starts_.front(), ends_.back() - starts_.front(), seed).first);
    return;
  }
  for (const std::size_t size : sizes) {
    for (std::size_t i = 0; i + size <= units; ++i) {
      add(murmur3_x64_128(text.data() + starts_[i], ends_[i + size - 1] - starts_[i], seed).first);
    }
  }
}

void FeatureTable::find_units(std::span<const std::uint8_t> text, int unit) {
  starts_.clear();
  ends_.clear();
  const std::size_t size = text.size();
  if (unit == kWord) {
    for (std::size_t i = 0; i < size; ++i) {
      if (text[i] == ' ') continue;
      if (i == 0 || text[i - 1] == ' ') starts_.push_back(i);
      if (i + 1 == size || text[i + 1] == ' ') ends_.push_back(i + 1);
    }
    return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    if ((text[i] & 0xc0) == 0x80) continue;  // inside a code point
    if (!starts_.empty()) ends_.push_back(i);
    starts_.push_back(i);
  }
  if (!starts_.empty()) ends_.push_back(size);
}

void FeatureTable::add(std::uint64_t hash) {
  std::size_t slot = hash & mask_;
  while (slots_[slot] != 0) {
    const std::size_t entry = slots_[slot] - 1;
    if (hashes_[entry] == hash) {
      if (counts_[entry] != std::numeric_limits<std::uint32_t>::max()) ++counts_[entry];
      return;
    }
    slot = (slot + 1) & mask_;
  }
  hashes_.push_back(hash);
  counts_.push_back(1);
  slots_[slot] = static_cast<std::uint32_t>(hashes_.size());
  if (hashes_.size() * 2 > mask_) resize_slots((mask_ + 1) * 4);
}

void FeatureTable::resize_slots(std::size_t capacity) {
  if (slots_.size() < capacity) slots_.resize(capacity);
  std::fill_n(slots_.begin(), capacity, 0);
  mask_ = capacity - 1;
  for (std::size_t entry = 0; entry < hashes_.size(); ++entry) {
    std::size_t slot = hashes_[entry] & mask_;
    while (slots_[slot] != 0) slot = (slot + 1) & mask_;
    slots_[slot] = static_cast<std::uint32_t>(entry + 1);
  }
}

}  // namespace simindex
