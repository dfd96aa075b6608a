#include "simhash/sizes.hpp"

#include <algorithm>
#include <cmath>

namespace simindex {

// No power of 2^(1 / 16) that is between two codes is a whole number, and none is so near to one
// that the last bit of log2 would decide. So all machines agree.
std::uint8_t size_code(std::uint64_t features) {
  if (features == 0) return 0;
  const double steps = std::round(8 * std::log2(static_cast<double>(features)));
  return static_cast<std::uint8_t>(1 + std::min(254.0, steps));
}

}  // namespace simindex
