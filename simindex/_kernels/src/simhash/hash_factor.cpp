#include "simhash/hash_factor.hpp"

#include <random>

namespace simindex {
namespace {

std::uint64_t drawn() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

const std::uint64_t kHashFactor = drawn();

}  // namespace simindex
