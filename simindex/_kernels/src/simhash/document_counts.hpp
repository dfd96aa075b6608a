// In how many documents each feature occurs: a table for each thread, until all are taken.
//
//   slots  | free | h 12 of 7 | h 1 of 7 | free | h 3 of 2 ...     power of two, at most half full
//
// "h 12 of 7": twelve documents have the feature, and the seventh is the last of them. So a feature
// that a document has again is known by one look, without a table of the document. It probes
// linearly, from the top bits of the hash times a number that every process draws anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace simindex {

class DocumentCounts {
 public:
  DocumentCounts() : slots_(kSmallest) {}

  // What is added from now on belongs to another document. At most 2^32 - 1 documents.
  void begin() { ++document_; }

  void add(std::span<const std::uint64_t> hashes);

  std::size_t features() const { return features_; }

  // Appends (hash, documents) of each feature, in no stated order.
  void append_to(std::vector<std::pair<std::uint64_t, std::uint32_t>>& counted) const;

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t documents = 0;  // 0: free
    std::uint32_t last = 0;
  };
  static constexpr std::size_t kSmallest = 4096;

  std::size_t place_of(std::uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_;
  std::size_t features_ = 0;
  std::uint32_t document_ = 0;
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

  // Features with their documents, by ascending hash. The tables are empty then.
  Counted take();

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<DocumentCounts>> tables_;
};

}  // namespace simindex
