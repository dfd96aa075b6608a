#include "simhash/document_counts.hpp"

#include <algorithm>
#include <bit>

#include "simhash/hash_factor.hpp"

namespace simindex {
namespace {

// So many hashes before one is looked for, its slot is asked for: the table of some thousand
// documents is larger than the first cache.
constexpr std::size_t kAhead = 8;

// Places are counted anew from so many on, before a document: it has fewer features than are left then.
constexpr std::uint32_t kMostPlaces = std::uint32_t{1} << 31;

}  // namespace

std::size_t DocumentCounts::place_of(std::uint64_t hash) const {
  return hash * kHashFactor >> (64 - std::countr_zero(slots_.size()));
}

void DocumentCounts::begin() {
  first_ += static_cast<std::uint32_t>(here_);
  here_ = 0;
  places_.clear();
  if (first_ < kMostPlaces) return;
  for (Slot& slot : slots_) slot.last = 0;
  first_ = 1;
}

void DocumentCounts::add(std::span<const std::uint64_t> hashes) {
  const std::size_t occurrences = places_.size();
  places_.resize(occurrences + hashes.size());
  if (own_.size() < here_ + hashes.size()) own_.resize(2 * (here_ + hashes.size()));
  std::uint32_t* const own = own_.data();
  std::uint32_t* const places = places_.data() + occurrences;
  const std::uint32_t first = first_;
  std::size_t here = here_;
  Slot* slots = slots_.data();
  std::size_t mask = slots_.size() - 1;
  int shift = 64 - std::countr_zero(slots_.size());
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) {
      __builtin_prefetch(&slots[hashes[i + kAhead] * kHashFactor >> shift], 1);
    }
    const std::uint64_t hash = hashes[i];
    std::size_t place = hash * kHashFactor >> shift;
    while (slots[place].hash != hash && slots[place].feature != 0) place = (place + 1) & mask;
    const bool fresh = slots[place].feature == 0;
    if (fresh) [[unlikely]] {
      features_.push_back(hash);
      documents_.push_back(0);
      slots[place].hash = hash;
      slots[place].feature = static_cast<std::uint32_t>(features_.size());
    }
    // Whether the document has it already is as good as random, so that nothing branches on it.
    const std::uint32_t last = slots[place].last;
    const std::size_t fresh_here = last < first;
    const std::size_t at = (here & (0 - fresh_here)) | ((last - first) & (fresh_here - 1));
    own[at] = slots[place].feature - 1;
    places[i] = static_cast<std::uint32_t>(at);
    slots[place].last = first + static_cast<std::uint32_t>(at);
    here += fresh_here;
    if (fresh && features_.size() * 2 > slots_.size()) [[unlikely]] {
      grow();
      slots = slots_.data();
      mask = slots_.size() - 1;
      shift = 64 - std::countr_zero(slots_.size());
    }
  }
  here_ = here;
}

void DocumentCounts::end() {
  for (std::size_t at = 0; at < here_; ++at) ++documents_[own_[at]];
}

bool DocumentCounts::keep() {
  if (features_.size() > kMostKept) return false;
  times_.assign(here_, 0);
  for (const std::uint32_t place : places_) ++times_[place];
  const std::size_t before = kept_.size();
  kept_.resize(before + here_ + places_.size() / kMostTimes);
  std::uint32_t* entry = kept_.data() + before;
  for (std::size_t at = 0; at < here_; ++at) {
    const std::uint32_t feature = own_[at] << kTimesBits;
    std::uint32_t times = times_[at];
    for (; times > kMostTimes; times -= kMostTimes) *entry++ = feature | kMostTimes;
    *entry++ = feature | times;
  }
  kept_.resize(static_cast<std::size_t>(entry - kept_.data()));
  return true;
}

void DocumentCounts::append_to(
    std::vector<std::pair<std::uint64_t, std::uint32_t>>& counted) const {
  counted.reserve(counted.size() + features_.size());
  for (std::size_t i = 0; i < features_.size(); ++i) {
    if (documents_[i] != 0) counted.emplace_back(features_[i], documents_[i]);
  }
}

void DocumentCounts::grow() {
  Slots smaller(slots_.size() * 2);
  smaller.swap(slots_);
  for (const Slot& slot : smaller) {
    if (slot.feature == 0) continue;
    std::size_t place = place_of(slot.hash);
    while (slots_[place].feature != 0) place = (place + 1) & (slots_.size() - 1);
    slots_[place] = slot;
  }
}

std::unique_ptr<DocumentCounts> DocumentTables::lend() {
  const std::lock_guard lock(mutex_);
  if (tables_.empty()) return std::make_unique<DocumentCounts>(made_++);
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
  for (const auto& table : tables_) features += table->features().size();
  return features;
}

void DocumentTables::list(std::vector<std::uint64_t>& features,
                          std::vector<std::int64_t>& starts) const {
  const std::lock_guard lock(mutex_);
  std::vector<const DocumentCounts*> numbered(made_);
  for (const auto& table : tables_) numbered[table->number()] = table.get();
  starts.push_back(0);
  for (const DocumentCounts* table : numbered) {
    if (table != nullptr) {
      features.insert(features.end(), table->features().begin(), table->features().end());
    }
    starts.push_back(static_cast<std::int64_t>(features.size()));
  }
}

DocumentTables::Counted DocumentTables::take() {
  Counted counted;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& table : tables_) table->append_to(counted);
    tables_.clear();
    made_ = 0;
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
