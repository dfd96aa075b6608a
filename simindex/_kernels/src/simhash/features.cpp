#include "simhash/features.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

namespace simindex {
namespace {

constexpr std::size_t kSmallestTable = 256;

// Drawn anew by every process, so that no document can be written whose features all fall into one
// run of slots. Results do not depend on it: entries stand in the order of their first occurrence.
std::uint64_t drawn_factor() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

const std::uint64_t kFactor = drawn_factor();

}  // namespace

std::size_t FeatureTable::slot_of(std::uint64_t hash) const { return hash * kFactor >> shift_; }

void FeatureTable::clear() {
  hashes_.clear();
  counts_.clear();
  resize_slots(kSmallestTable);
}

void FeatureTable::add(std::uint64_t hash, std::uint32_t times) {
  std::size_t slot = slot_of(hash);
  while (slots_[slot] != 0) {
    const std::size_t entry = slots_[slot] - 1;
    if (hashes_[entry] == hash) {
      const std::uint32_t room = std::numeric_limits<std::uint32_t>::max() - counts_[entry];
      counts_[entry] += std::min(times, room);
      return;
    }
    slot = (slot + 1) & mask_;
  }
  hashes_.push_back(hash);
  counts_.push_back(times);
  slots_[slot] = static_cast<std::uint32_t>(hashes_.size());
  if (hashes_.size() * 2 > mask_) resize_slots((mask_ + 1) * 4);
}

void FeatureTable::resize_slots(std::size_t capacity) {
  if (slots_.size() < capacity) slots_.resize(capacity);
  std::fill_n(slots_.begin(), capacity, 0);
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
  for (std::size_t entry = 0; entry < hashes_.size(); ++entry) {
    std::size_t slot = slot_of(hashes_[entry]);
    while (slots_[slot] != 0) slot = (slot + 1) & mask_;
    slots_[slot] = static_cast<std::uint32_t>(entry + 1);
  }
}

}  // namespace simindex
