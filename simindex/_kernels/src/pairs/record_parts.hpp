// The records of a pass over the rows, partitioned by the upper digit of their keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/memory.hpp"
#include "pairs/group.hpp"
#include "pairs/pairs.hpp"

namespace simindex {

inline constexpr std::size_t kPairsAhead = 128;  // rows or records asked for ahead of a pass over them

// A row on its way to the others of its group.
struct PairRecord {
  std::uint64_t word;
  std::uint32_t row;
  std::uint32_t key;
};

// Records by the upper digit of their key, in the order of rows.
class RecordParts {
 public:
  // Of all rows, or of those `kept`.
  void fill(const Wish& wish, const BlockChoice& choice, std::span<const std::uint32_t> kept,
            std::size_t threads);

  std::size_t size() const { return starts.size() - 1; }

  int lower_bits = 0;
  std::uint32_t usual_rows = 0;  // of a group of uniform rows, at most
  Memory<PairRecord> records;
  std::vector<std::size_t> starts;

 private:
  template <class RowOf, class WordOf, class KeyOf>
  void fill_with(std::size_t n, int key_bits, std::size_t threads, const RowOf& row_of,
                 const WordOf& word_of, const KeyOf& key_of);

  std::size_t capacity_ = 0;
};

}  // namespace simindex
