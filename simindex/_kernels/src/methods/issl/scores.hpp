// Distances and scores of rows, as issl.hpp defines them, in the way of a level.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simindex {

struct RowScoring {
  // of (count,): numbers of rows; out (count,): their distances.
  void (*distances)(const std::uint64_t* rows, std::size_t words, const std::uint32_t* of,
                    std::size_t count, const std::uint64_t* query, std::uint16_t* out);
  // rows (count, words), one after the other; out (count,): their scores.
  void (*scores)(const std::uint64_t* rows, std::size_t words, std::size_t count,
                 const std::uint64_t* query, int width, int max_error, std::uint16_t* out);
};

RowScoring row_scoring(int level);

}  // namespace simindex
