#include "simhash/document_counts.hpp"

#include <algorithm>
#include <bit>

#include "simhash/hash_factor.hpp"

namespace simindex {
namespace {

// So many hashes before one is looked for, its slot is asked for: the table of some thousand
// documents is larger than the first cache.
constexpr std::size_t kAhead = 8;

}  // namespace

std::size_t DocumentCounts::place_of(std::uint64_t hash) const {
  return hash * kHashFactor >> (64 - std::countr_zero(slots_.size()));
}

void DocumentCounts::add(std::span<const std::uint64_t> hashes) {
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) __builtin_prefetch(&slots_[place_of(hashes[i + kAhead])], 1);
    const std::uint64_t hash = hashes[i];
    std::size_t place = place_of(hash);
    while (slots_[place].documents != 0 && slots_[place].hash != hash) {
      place = (place + 1) & (slots_.size() - 1);
    }
    Slot& slot = slots_[place];
    const bool fresh = slot.documents == 0;
    slot.hash = hash;
    slot.documents += slot.last != document_;
    slot.last = document_;
    if (fresh && ++features_ * 2 > slots_.size()) grow();
  }
}

void DocumentCounts::append_to(
    std::vector<std::pair<std::uint64_t, std::uint32_t>>& counted) const {
  counted.reserve(counted.size() + features_);
  for (const Slot& slot : slots_) {
    if (slot.documents != 0) counted.emplace_back(slot.hash, slot.documents);
  }
}

void DocumentCounts::grow() {
  std::vector<Slot> smaller(slots_.size() * 2);
  smaller.swap(slots_);
  for (const Slot& slot : smaller) {
    if (slot.documents == 0) continue;
    std::size_t place = place_of(slot.hash);
    while (slots_[place].documents != 0) place = (place + 1) & (slots_.size() - 1);
    slots_[place] = slot;
  }
}

std::unique_ptr<DocumentCounts> DocumentTables::lend() {
  const std::lock_guard lock(mutex_);
  if (tables_.empty()) return std::make_unique<DocumentCounts>();
  std::unique_ptr<DocumentCounts> table = std::move(tables_.back());
  tables_.pop_back();
  return table;
}

void DocumentTables::give_back(std::unique_ptr<DocumentCounts> table) {
  const std::lock_guard lock(mutex_);
  tables_.push_back(std::move(table));
}

std::size_t DocumentTables::features() const {
  const std::lock_guard lock(mutex_);
  std::size_t features = 0;
  for (const auto& table : tables_) features += table->features();
  return features;
}

DocumentTables::Counted DocumentTables::take() {
  Counted counted;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& table : tables_) table->append_to(counted);
    tables_.clear();
  }
  std::sort(counted.begin(), counted.end());
  std::size_t distinct = 0;
  for (const auto& [hash, documents] : counted) {
    if (distinct != 0 && counted[distinct - 1].first == hash) {
      counted[distinct - 1].second += documents;
    } else {
      counted[distinct++] = {hash, documents};
    }
  }
  counted.resize(distinct);
  return counted;
}

}  // namespace simindex
