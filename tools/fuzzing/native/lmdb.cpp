// Arbitrary pages as a file of LMDB's format 1.
#include "input.hpp"
#include "storage/lmdb_pages.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // On the heap, and of exactly this size.
  Array<std::uint8_t> file(size);
  std::memcpy(file.data, data, size);
  for (const std::size_t at : {std::size_t{0}, std::size_t{512}, std::size_t{4096}}) {
    if (at + 152 > size) break;
    const std::span<const std::uint8_t> meta(file.data + at, 152);
    const PageReport exact = check_pages(file, meta, true);
    const PageReport led = check_pages(file, meta, false);
    REQUIRE(exact.pages <= size && (exact.fault != PageFault::kNone || led.fault == PageFault::kNone));
  }
  return 0;
}
