// The features of documents: read one after the other as hashes, and the distinct ones counted.
//
// `FeatureReader` gives the hashes of a document's n-grams block by block, in no stated order; a
// document with at least one unit but fewer than the smallest n-gram has one feature, itself.
//
// `FeatureSet` counts how many hashes are distinct, `FeatureTable` also how often each occurs. It is reused from document to document and probes linearly,
// from the top bits of the hash times kHashFactor:
//
//   slots  | 0 | 2 | 0 | 1 | 3 | 0 ...    power of two, at most half full; 0 is free, else an entry
//   hashes |  | h1 | h2 | h3 |            in order of first occurrence
//   counts |  | c1 | c2 | c3 |
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simhash/feature_hash.hpp"
#include "simhash/units.hpp"

namespace simindex {

// Which features a text has.
struct FeatureChoice {
  int unit = kWord;
  bool pairs = true;                 // letters of scripts without spaces in overlapping pairs
  std::vector<std::uint8_t> sizes;   // of n-grams, ascending, at least one
  std::uint32_t seed = 0;
};

// Units that are known already: unit i of `bytes` ends at ends[i] and the next starts behind the
// separator there; Units::kPadding more bytes can be read.
struct ReadyUnits {
  const std::uint8_t* bytes = nullptr;
  std::span<const std::uint64_t> starts;
  std::span<const std::uint64_t> ends;
};

enum class Reading { kDone, kInvalid, kStopped };

class FeatureReader {
 public:
  FeatureReader(const FeatureChoice& choice, int level)
      : choice_(choice), level_(level), units_(choice.unit, choice.pairs, level) {}

  // Calls sink(hashes) for blocks of hashes, and `stopped()` between pieces of the text: reading
  // ends when it says so.
  template <class Sink, class Stopped>
  Reading read(const Text& text, Sink&& sink, Stopped&& stopped) {
    units_.begin(text);
    filled_ = 0;
    const std::size_t most = choice_.sizes.back() - 1u;
    std::size_t done = 0;   // units whose n-grams were given
    std::size_t total = 0;
    for (bool more = true; more;) {
      more = units_.read();
      if (units_.invalid_at() != Units::kValid) return Reading::kInvalid;
      const ReadyUnits units{units_.bytes(), units_.starts(), units_.ends()};
      give(units, done, sink);
      total += units.ends.size() - done;
      if (!more) {
        give_short(units, total, sink);
        break;
      }
      if (stopped()) return Reading::kStopped;
      done = std::min(units.ends.size(), most);
      units_.keep(most);
    }
    if (filled_ != 0) sink(std::span<const std::uint64_t>(hashes_.data(), filled_));
    return Reading::kDone;
  }

  template <class Sink>
  void read(const ReadyUnits& units, Sink&& sink) {
    filled_ = 0;
    give(units, 0, sink);
    give_short(units, units.ends.size(), sink);
    if (filled_ != 0) sink(std::span<const std::uint64_t>(hashes_.data(), filled_));
  }

  std::size_t invalid_at() const { return units_.invalid_at(); }

 private:
  // N-grams whose last unit is `done` or later.
  template <class Sink>
  void give(const ReadyUnits& units, std::size_t done, Sink& sink) {
    for (const std::size_t size : choice_.sizes) {
      const std::size_t first = std::max(done, size - 1);
      if (units.ends.size() > first) {
        give(units, first + 1 - size, first, units.ends.size() - first, sink);
      }
    }
  }

  template <class Sink>
  void give_short(const ReadyUnits& units, std::size_t total, Sink& sink) {
    if (total != 0 && total < choice_.sizes.front()) give(units, 0, total - 1, 1, sink);
  }

  // `n` features, the first from the start of unit `first` to the end of unit `last`.
  template <class Sink>
  void give(const ReadyUnits& units, std::size_t first, std::size_t last, std::size_t n,
            Sink& sink) {
    while (n != 0) {
      const std::size_t some = std::min(n, hashes_.size() - filled_);
      hash_features(units.bytes, units.starts.data() + first, units.ends.data() + last, some,
                    choice_.seed, hashes_.data() + filled_, level_);
      filled_ += some;
      first += some;
      last += some;
      n -= some;
      if (filled_ == hashes_.size()) {
        sink(std::span<const std::uint64_t>(hashes_.data(), filled_));
        filled_ = 0;
      }
    }
  }

  FeatureChoice choice_;
  int level_;
  Units units_;
  std::array<std::uint64_t, 2048> hashes_;
  std::size_t filled_ = 0;
};

class FeatureTable {
 public:
  FeatureTable() { clear(); }

  // Keeps room for as many features as there were: documents of a collection are alike.
  void clear();
  void add(std::span<const std::uint64_t> hashes);  // a count stays at 2^32 - 1

  std::span<const std::uint64_t> hashes() const { return {hashes_.data() + 1, size_}; }
  std::span<const std::uint32_t> counts() const { return {counts_.data() + 1, size_}; }
  std::size_t size() const { return size_; }

 private:
  void make_room(std::size_t features);

  std::vector<std::uint32_t> slots_;
  std::size_t mask_ = 0;  // slots in use - 1; slots_ itself may be longer
  int shift_ = 0;
  std::size_t size_ = 0;
  std::vector<std::uint64_t> hashes_;  // from entry 1 on; longer than what is in use
  std::vector<std::uint32_t> counts_;
};

// Distinct hashes where only their number is asked for: in half the time of the table.
class FeatureSet {
 public:
  FeatureSet() { clear(); }

  void clear();  // keeps room, as the table does
  void add(std::span<const std::uint64_t> hashes);

  std::size_t size() const { return size_ + has_zero_; }

 private:
  void make_room(std::size_t features);

  std::vector<std::uint64_t> slots_;  // a hash, or 0 where free
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::size_t size_ = 0;  // without the hash 0
  bool has_zero_ = false;
};

}  // namespace simindex
