// In how many bits the sketches of rows differ, where each is S words and a byte of its size.
//
//   | w0 | w1 | ... | w(S-1) | size |     8 S + 1 bytes, so words are not aligned
#pragma once

#include <cstddef>
#include <cstdint>

namespace simindex {

// Records of rows, `words` words each without their size.
struct Records {
  const std::uint8_t* bytes;
  std::size_t words;

  const std::uint8_t* at(std::int64_t row) const {
    return bytes + static_cast<std::size_t>(row) * (8 * words + 1);
  }
};

// distance[i] is that of rows one[i] of `some` and other[i] of `others`, at most 65,535 bits.
void record_distances(const Records& some, const std::int64_t* one, const Records& others,
                      const std::int64_t* other, std::size_t n, std::uint16_t* distance,
                      int level);

}  // namespace simindex
