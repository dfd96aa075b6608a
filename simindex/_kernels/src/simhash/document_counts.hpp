// In how many documents each feature occurs: a table for each thread, until all are taken.
//
//   slots      | free | h 12 at 7 | h 3 at 0 | free | h 1 at 9 ...    power of two, at most half full
//   features   | h1 | h2 | h3 |       in order of first occurrence, with the documents of each
//   document   | 12 3x | 3 1x |       the features of the present one, and how often it has each
//
// "h 12 at 7": the hash is feature 12, and its place in the document is 7, counted from the first
// document on. So a feature that a document has again is known by one look, without a table of the
// document. It probes linearly, from the top bits of the hash times a number that every process draws
// anew.
//
// The features of a document can be kept, to be fingerprinted when weights are learned:
//
//   entry      | feature: 24 bits | times: 8 bits |    a feature that occurs more often has several
//                                                      entries, one after the other
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "cpu/memory.hpp"

namespace simindex {

inline constexpr int kTimesBits = 8;
inline constexpr std::uint32_t kMostTimes = (std::uint32_t{1} << kTimesBits) - 1;
inline constexpr std::size_t kMostKept = std::size_t{1} << (32 - kTimesBits);  // features of a table

class DocumentCounts {
 public:
  // `number` tells the tables of a `DocumentTables` apart.
  explicit DocumentCounts(std::uint32_t number = 0) : number_(number), slots_(kSmallest) {}

  // What is added until `end` belongs to another document. At most 2^32 - 1 documents.
  void begin();
  void add(std::span<const std::uint64_t> hashes);
  void end();

  // Appends the entries of the document that has ended to those that are kept. False, and nothing, if a
  // feature is beyond the first kMostKept.
  bool keep();
  void keep_anew() { kept_.clear(); }
  std::span<const std::uint32_t> kept() const { return kept_; }

  std::uint32_t number() const { return number_; }
  std::span<const std::uint64_t> features() const { return features_; }

  // Appends (hash, documents) of each feature, in no stated order.
  void append_to(std::vector<std::pair<std::uint64_t, std::uint32_t>>& counted) const;

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t feature = 0;  // from 1 on; 0: free
    std::uint32_t last = 0;     // its place in the last document that has it, from first_ on
  };
  // Each look goes to another page of them.
  using Slots = std::vector<Slot, LargePages<Slot>>;
  static constexpr std::size_t kSmallest = 4096;

  std::size_t place_of(std::uint64_t hash) const;
  void grow();

  std::uint32_t number_;
  Slots slots_;
  std::vector<std::uint64_t> features_;
  std::vector<std::uint32_t> documents_;  // of each feature
  std::uint32_t first_ = 1;               // place of the document's first feature
  std::size_t here_ = 0;                  // features of the document
  std::vector<std::uint32_t> own_;        // these; longer than what is in use
  std::vector<std::uint32_t> places_;     // of each occurrence, which of these it is
  std::vector<std::uint32_t> times_;
  std::vector<std::uint32_t> kept_;
};

// The tables of some calls, one after the other: a call finds the tables that the ones before filled, and
// a feature of many calls is sorted once. One call at a time, whose threads each have one table.
class DocumentTables {
 public:
  using Counted = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

  // A table for a thread, which gives it back when all of its documents are counted.
  std::unique_ptr<DocumentCounts> lend();
  void give_back(std::unique_ptr<DocumentCounts> table);

  // Of all tables that are here; a feature counts in each that has it.
  std::size_t features() const;

  // The features of all tables, by their numbers: those of table t are from starts[t] to starts[t + 1].
  void list(std::vector<std::uint64_t>& features, std::vector<std::int64_t>& starts) const;

  // Features with their documents, by ascending hash. The tables are empty then.
  Counted take();

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<DocumentCounts>> tables_;
  std::uint32_t made_ = 0;
};

}  // namespace simindex
