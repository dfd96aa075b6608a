// The rows of highest score, ties by lower row number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/growing.hpp"

namespace simindex {

// Rows come in groups, all of a group below those of the next.
//
//   key   (65535 - score) << 32 | row: the smallest are the best
class BestRows {
 public:
  explicit BestRows(std::size_t most) : most_(most) {}

  void begin() {
    size = 0;
    least = 0;
  }
  // Room for a group of at most so many rows, after those kept: where keys of its rows are written.
  std::uint64_t* group(std::size_t most) {
    keys_.reserve(size + most + 1);
    return keys_.data() + size;
  }
  static std::uint64_t key(std::uint32_t row, std::uint32_t score) {
    return std::uint64_t{0xffff - score} << 32 | row;
  }
  // After a group, whose keys end there.
  void end_group(const std::uint64_t* end) {
    size = static_cast<std::size_t>(end - keys_.data());
    if (size >= 4 * most_ + 1024) trim();
  }
  // All rows kept, at most `most`, by row number.
  const std::uint32_t* end() {
    trim();
    if (rows_.size() < size) rows_.resize(size);
    for (std::size_t i = 0; i < size; ++i) rows_[i] = static_cast<std::uint32_t>(keys_[i]);
    std::sort(rows_.data(), rows_.data() + size);
    return rows_.data();
  }

  std::size_t size = 0;
  std::uint32_t least = 0;  // score that a row of a later group needs

 private:
  void trim() {
    if (size < most_ || most_ == 0) return;
    std::uint64_t* keys = keys_.data();
    if (size > most_) std::nth_element(keys, keys + most_ - 1, keys + size);
    const std::uint64_t worst = size > most_ ? keys[most_ - 1] : *std::max_element(keys, keys + size);
    size = most_;
    least = static_cast<std::uint32_t>(0xffff - (worst >> 32)) + 1;
  }

  std::size_t most_;
  Growing<std::uint64_t> keys_;
  std::vector<std::uint32_t> rows_;
};

}  // namespace simindex
