// The K nearest documents of one query, where a document may have many rows.
//
// A document stands for the least of its rows by (distance, row); documents are ordered by
// (distance, id). What is kept does not depend on the order in which rows come:
//
//   kept     sorted by (distance, id), distinct ids        up to kSorted places: always so
//   pending  rows that came since, in any order            only where more places are asked for
//
// With few places a row is put where it belongs: an insertion compares the ids of all places.
// With many, as many rows are gathered as there are places and then sorted together with these, so a
// row costs O(log K) whatever K is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace simindex {

class TopK {
 public:
  struct Entry {
    std::uint64_t id;
    std::uint32_t row;
    std::uint16_t distance;
  };

  static constexpr std::size_t kSorted = 64;
  static constexpr std::uint32_t kNoLimit = 0xffff;

  // Room for k documents, k at least 1; memory is taken as rows come.
  explicit TopK(std::size_t k) : k_(k) {}

  // No row farther than this can enter: the distance of the last place, if all are taken.
  std::uint32_t limit() const { return limit_; }

  void insert(std::uint32_t distance, std::uint64_t id, std::uint32_t row) {
    if (distance > limit_ || (distance == limit_ && id > limit_id_)) return;
    const Entry entry{id, row, static_cast<std::uint16_t>(distance)};
    if (k_ <= kSorted)
      place(entry);
    else
      gather(entry);
  }

  // All that another one holds.
  void merge(const TopK& other) {
    for (const Entry& entry : other.entries_) insert(entry.distance, entry.id, entry.row);
  }

  // The documents by (distance, id), at most k; nothing may be inserted afterwards.
  const std::vector<Entry>& sorted() {
    settle();
    std::sort(entries_.begin(), entries_.end(), nearer);
    return entries_;
  }

 private:
  static bool nearer(const Entry& a, const Entry& b) {
    return std::tie(a.distance, a.id) < std::tie(b.distance, b.id);
  }

  static bool by_document(const Entry& a, const Entry& b) {
    return std::tie(a.id, a.distance, a.row) < std::tie(b.id, b.distance, b.row);
  }

  void place(const Entry& entry) {
    std::size_t at = 0;
    while (at < entries_.size() && entries_[at].id != entry.id) ++at;
    if (at < entries_.size()) {  // the document's nearest row is kept
      Entry& same = entries_[at];
      if (std::tie(same.distance, same.row) <= std::tie(entry.distance, entry.row)) return;
    } else if (entries_.size() < k_) {
      entries_.push_back(entry);
    } else {
      at = k_ - 1;  // the last place is lost to a nearer document
    }
    for (; at > 0 && nearer(entry, entries_[at - 1]); --at) entries_[at] = entries_[at - 1];
    entries_[at] = entry;
    if (entries_.size() == k_) {
      limit_ = entries_.back().distance;
      limit_id_ = entries_.back().id;
    }
  }

  void gather(const Entry& entry) {
    entries_.push_back(entry);
    if (entries_.size() - settled_ >= k_) settle();
  }

  // Keeps each document once, and the k nearest of them.
  void settle() {
    if (k_ <= kSorted || entries_.size() == settled_) return;
    std::sort(entries_.begin(), entries_.end(), by_document);
    const auto end = std::unique(entries_.begin(), entries_.end(),
                                 [](const Entry& a, const Entry& b) { return a.id == b.id; });
    entries_.erase(end, entries_.end());
    if (entries_.size() >= k_) {
      const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
      std::nth_element(entries_.begin(), last, entries_.end(), nearer);
      limit_ = last->distance;
      limit_id_ = last->id;
      entries_.resize(k_);
    }
    settled_ = entries_.size();
  }

  std::size_t k_;
  std::size_t settled_ = 0;  // of entries_, those before this are distinct
  std::uint32_t limit_ = kNoLimit;
  std::uint64_t limit_id_ = ~std::uint64_t{0};
  std::vector<Entry> entries_;
};

}  // namespace simindex
