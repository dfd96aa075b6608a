// How far the words of a document are rarer than in its own language: what a balanced weighting
// takes off every idf.
//
//   steps of idf of the words, and of kCommonWords that every document has, ascending
//     | a tenth |  two tenths: their mean m  | the rest |
//   rarer  d = m - 1              about ln of (documents / documents in this language)
//   shift  0 where d <= ln 2,  2 (d - ln 2) up to d = 2 ln 2,  d beyond
//
// Where most documents share a language, its function words have an idf near 1, and nothing is taken
// off. In a language of one document in thirty they have ln 30 more, and so has every word. A tenth
// is left out, because other languages have a few words of the same spelling. Whole numbers only, so
// neither the order of words nor the instruction set shows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simhash/idf.hpp"

namespace simindex {

// Words of the least idf that count with those of a text: 23 words or fewer keep their idf, because
// too little is known of their language.
inline constexpr std::size_t kCommonWords = 10;
inline constexpr std::uint64_t kHalf = 2839;  // ln 2 in steps: half of the documents

// The shift in steps. `scratch` is of the caller, so that it is allocated once.
std::uint64_t idf_shift(std::span<const std::uint64_t> steps, std::vector<std::uint32_t>& scratch);

// The same of words that occur several times each.
std::uint64_t idf_shift(std::span<const std::uint64_t> steps, std::span<const std::uint32_t> times,
                        std::vector<std::uint32_t>& scratch);

// A step less the shift, at least kOneStep.
inline std::uint64_t shifted(std::uint64_t step, std::uint64_t shift) {
  return step - std::min(shift, std::max(step, kOneStep) - kOneStep);
}

}  // namespace simindex
