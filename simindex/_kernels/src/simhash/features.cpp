#include "simhash/features.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "simhash/hash_factor.hpp"

namespace simindex {
namespace {

constexpr std::size_t kFewest = 64;  // features that there is room for
constexpr std::size_t kPiece = 64;   // hashes that room is made for at once

// Slots of a set for each feature: twice as many where they stay in the caches.
constexpr std::size_t slots_for(std::size_t features) {
  return (features <= 4096 ? 4 : 2) * features;
}

// Makes so many slots free, a power of two. Room that there was is kept.
template <class Slot>
void free_slots(std::size_t count, std::vector<Slot>& slots, std::size_t& mask, int& shift) {
  if (slots.size() < count) slots.resize(count);
  std::fill_n(slots.begin(), count, 0);
  mask = count - 1;
  shift = 64 - std::countr_zero(count);
}

}  // namespace

void FeatureTable::clear() {
  free_slots(std::bit_ceil(2 * std::max(size_, kFewest)), slots_, mask_, shift_);
  size_ = 0;
}

void FeatureTable::add(std::span<const std::uint64_t> hashes) {
  while (!hashes.empty()) {
    const auto some = hashes.first(std::min(kPiece, hashes.size()));
    hashes = hashes.subspan(some.size());
    make_room(size_ + some.size());
    // Whether a feature is new is as good as random, so that nothing here branches on it: a free slot leads to
    // entry 0, which is made equal to what is looked for. A branch instead took a third of the time of 1-
    // and 2-grams more.
    std::uint32_t* const slots = slots_.data();
    std::uint64_t* const known = hashes_.data();
    std::uint32_t* const counts = counts_.data();
    std::size_t size = size_;
    for (const std::uint64_t hash : some) {
      known[0] = hash;
      counts[size + 1] = 0;
      std::size_t place = hash * kHashFactor >> shift_;
      while (known[slots[place]] != hash) place = (place + 1) & mask_;
      const std::size_t found = slots[place];
      const std::size_t fresh = found == 0;
      const std::size_t entry = found | ((size + 1) & (0 - fresh));
      const std::uint32_t count = counts[entry];
      size += fresh;
      slots[place] = static_cast<std::uint32_t>(entry);
      known[entry] = hash;
      counts[entry] = count + (count != std::numeric_limits<std::uint32_t>::max());
    }
    size_ = size;
  }
}

// For so many features in all.
void FeatureTable::make_room(std::size_t features) {
  if (hashes_.size() < features + 1) {
    hashes_.resize(2 * features + 1);
    counts_.resize(2 * features + 1);
  }
  if (2 * features <= mask_ + 1) return;
  free_slots(std::bit_ceil(4 * features), slots_, mask_, shift_);
  for (std::size_t entry = 1; entry <= size_; ++entry) {
    std::size_t place = hashes_[entry] * kHashFactor >> shift_;
    while (slots_[place] != 0) place = (place + 1) & mask_;
    slots_[place] = static_cast<std::uint32_t>(entry);
  }
}

void FeatureSet::clear() {
  free_slots(std::bit_ceil(slots_for(std::max(size_, kFewest))), slots_, mask_, shift_);
  size_ = 0;
  has_zero_ = false;
}

void FeatureSet::add(std::span<const std::uint64_t> hashes) {
  while (!hashes.empty()) {
    const auto some = hashes.first(std::min(kPiece, hashes.size()));
    hashes = hashes.subspan(some.size());
    make_room(size_ + some.size());
    std::uint64_t* const slots = slots_.data();
    std::size_t size = size_;
    for (const std::uint64_t hash : some) {
      std::size_t place = hash * kHashFactor >> shift_;
      std::uint64_t known = slots[place];
      // One condition: whether a slot is free or has this hash is as good as random.
      while ((known ^ hash) * std::uint64_t{known != 0} != 0) {
        place = (place + 1) & mask_;
        known = slots[place];
      }
      slots[place] = hash;
      size += known != hash;
      has_zero_ |= hash == 0;
    }
    size_ = size;
  }
}

// For so many features in all.
void FeatureSet::make_room(std::size_t features) {
  if (slots_for(features) <= mask_ + 1) return;
  const std::vector<std::uint64_t> before(slots_.begin(), slots_.begin() + mask_ + 1);
  free_slots(std::bit_ceil(slots_for(features)), slots_, mask_, shift_);
  for (const std::uint64_t hash : before) {
    if (hash == 0) continue;
    std::size_t place = hash * kHashFactor >> shift_;
    while (slots_[place] != 0) place = (place + 1) & mask_;
    slots_[place] = hash;
  }
}

}  // namespace simindex
