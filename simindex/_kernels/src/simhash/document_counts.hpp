// In how many documents each feature occurs: one table for all documents of a thread.
//
//   slots  | free | h 12 of 7 | h 1 of 7 | free | h 3 of 2 ...     power of two, at most half full
//
// "h 12 of 7": twelve documents have the feature, and the seventh is the last of them. So a feature
// that a document has again is known by one look, without a table of the document. It probes
// linearly, from the top bits of the hash times a number that every process draws anew.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace simindex
