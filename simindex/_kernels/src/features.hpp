// The distinct features of one document, counted.
//
// A document arrives prepared, so that every feature is one contiguous slice of its bytes:
//
//   words    "the quick brown fox"     words separated by one space
//             [------------]           an n-gram of words is the bytes from the first byte of its
//                 [-------------]      first word to the last byte of its last word
//   chars    UTF-8                     an n-gram of code points starts and ends at code point starts
//
// A document with at least one unit (word, code point) but fewer than the smallest size has one
// feature, itself. A feature's hash is the first half of its MurmurHash3 x64-128; features with
// equal hashes are one feature.
//
// The table, reused from document to document, probes linearly:
//
//   slots  | 0 | 2 | 0 | 1 | 3 | 0 ...    power of two, at most half full; 0 is free, else entry + 1
//   hashes | h0 | h1 | h2 |               in order of first occurrence
//   counts | c0 | c1 | c2 |
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace simindex {

enum Unit : int { kWord = 0, kChar = 1 };

class FeatureTable {
 public:
  // Replaces the content by the features of `text`. `sizes` are ascending and at least 1.
  void count(std::span<const std::uint8_t> text, int unit, std::span<const std::uint8_t> sizes,
             std::uint32_t seed);

  std::span<const std::uint64_t> hashes() const { return hashes_; }
  std::span<const std::uint32_t> counts() const { return counts_; }

 private:
  void find_units(std::span<const std::uint8_t> text, int unit);
  void add(std::uint64_t hash);
  void resize_slots(std::size_t capacity);

  std::vector<std::size_t> starts_;  // of each unit, in bytes
  std::vector<std::size_t> ends_;
  std::vector<std::uint32_t> slots_;
  std::size_t mask_ = 0;  // slots in use - 1; slots_ itself may be longer
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> counts_;
};

}  // namespace simindex
