// The K nearest distinct ids seen so far.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simindex {

class TopK {
 public:
  struct Item {
    std::uint32_t distance;
    std::uint64_t id;
    std::uint32_t row;
  };

  explicit TopK(std::size_t k) : k_(k) {}

  void clear() { items_.clear(); }

  void insert(std::uint32_t distance, std::uint64_t id, std::uint32_t row) {
    const auto before = [](const Item& a, const Item& b) {
      return a.distance != b.distance ? a.distance < b.distance : a.id < b.id;
    };
    const Item item{distance, id, row};
    if (items_.size() == k_ && !before(item, items_.back())) return;
    const auto same =
        std::find_if(items_.begin(), items_.end(), [&](const Item& i) { return i.id == id; });
    if (same != items_.end()) {
      if (same->distance <= distance) return;
      items_.erase(same);
    } else if (items_.size() == k_) {
      items_.pop_back();
    }
    items_.insert(std::upper_bound(items_.begin(), items_.end(), item, before), item);
  }

  const std::vector<Item>& items() const { return items_; }

 private:
  std::size_t k_;
  std::vector<Item> items_;
};

}  // namespace simindex
