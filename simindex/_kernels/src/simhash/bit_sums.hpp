// Sums over the columns of a bit matrix: how many rows, or what weight of rows, have bit j set.
//
// Counting goes by carry-save adders (Harley and Seal): 16 words become bit planes worth 1, 2, 4, 8
// and 16, with about two operations a word, and only the planes worth 16 are added to 64 counters:
//
//   word 0  ..0110..
//   word 1  ..0011..      ones  ..0100..     the lowest bits of 64 column sums,
//   word 2  ..0001..  ->  twos  ..0011..     the next ones, and so on
//
// Draws of one feature are counted side by side: lane w of a vector is word w, so that the planes of all
// features are those of 64 columns a lane, and become counters once, at the end of a block.
//
// Every level gives the same sums.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simindex {

inline constexpr std::size_t kColumns = 64;

inline constexpr std::size_t kCounted = 2048;  // features that are counted in planes together
inline constexpr std::size_t kWeighed = 256;   // whose weights are prepared together

// Draw `index` of a feature hash: the hash itself for 0, else that output of SplitMix64 started at it.
inline std::uint64_t draw(std::uint64_t hash, std::uint64_t index) {
  if (index == 0) return hash;
  std::uint64_t z = hash + index * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// sums[j] += number of bits[i] that have bit j (0 is the lowest); fewer than 2^31 rows.
void count_bits(const std::uint64_t* bits, std::size_t n, std::int32_t* sums, int level);

// sums[j] += weights[i] for all bits[i] that have bit j; all weights together are below 2^31.
void weigh_bits(const std::uint64_t* bits, const std::int32_t* weights, std::size_t n,
                std::int32_t* sums, int level);

// The same of draws 0 to `words` - 1 of hashes: draw w adds to sums[64 w + j].
void count_draws(const std::uint64_t* hashes, std::size_t n, std::size_t words, std::int32_t* sums,
                 int level);
void weigh_draws(const std::uint64_t* hashes, const std::int32_t* weights, std::size_t n,
                 std::size_t words, std::int32_t* sums, int level);

// out[i] = draw `index` of hashes[i]; `out` may be `hashes`.
void draw(const std::uint64_t* hashes, std::size_t n, std::uint64_t index, std::uint64_t* out,
          int level);

// sums[i] += factor * counted[i]
void add_multiples(const std::int32_t* counted, std::size_t n, std::int64_t factor, std::int64_t* sums,
                   int level);

// Bit j is set where sums[j] >= least, of kColumns sums.
std::uint64_t at_least(const std::int64_t* sums, std::int64_t least, int level);

}  // namespace simindex
