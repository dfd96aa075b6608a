#include "storage/verified.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cpu/levels.hpp"
#include "cpu/workers.hpp"
#include "storage/crc32c.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace simindex {
namespace {

#if defined(__linux__)
// 0, or the errno of an advice about the pages that hold some bytes.
int advise(std::span<const std::uint8_t> bytes, int advice) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t from = first / page * page;
  void* const start = reinterpret_cast<void*>(from);
  while (madvise(start, first + bytes.size() - from, advice) != 0)
    if (errno != EINTR && errno != EAGAIN) return errno;
  return 0;
}
#endif

// Brings bytes in; false if that cannot be. To touch them then would end the process by a signal.
bool readable(std::span<const std::uint8_t> bytes) {
#if defined(__linux__)
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, since Linux 5.14
  const int failure = advise(bytes, kPopulateRead);
  return failure != EFAULT && failure != EIO && failure != EHWPOISON;
#else
  (void)bytes;
  return true;
#endif
}

}  // namespace

Verified::Verified(std::span<const std::uint8_t> data, std::span<const std::uint32_t> sums,
                   std::uint64_t seed, std::string path, std::uint64_t offset, std::string remedy)
    : data_(data), sums_(std::make_unique<std::uint32_t[]>(sums.size())), seed_(seed),
      path_(std::move(path)), offset_(offset), remedy_(std::move(remedy)),
      whole_(std::make_unique<std::atomic<std::uint8_t>[]>(sums.size())), left_(sums.size()) {
  std::copy(sums.begin(), sums.end(), sums_.get());
}

std::span<const std::uint8_t> Verified::bytes_of(std::size_t chunk) const {
  const std::size_t begin = chunk * kChunkBytes;
  return data_.subspan(begin, std::min(kChunkBytes, data_.size() - begin));
}

void Verified::compare(std::size_t chunk) {
  const std::span<const std::uint8_t> bytes = bytes_of(chunk);
  const std::uint64_t offset = offset_ + chunk * kChunkBytes;
  if (!readable(bytes)) throw DamagedChunk(path_, remedy_, offset, bytes.size(), false);
  std::uint32_t sum = 0;
  crc32c_chunks(bytes, kChunkBytes, seed_, chunk, {&sum, 1}, resolve_level(-1));
  if (sum != sums_[chunk]) throw DamagedChunk(path_, remedy_, offset, bytes.size(), true);
  // A thread that came second must not count it again.
  if (whole_[chunk].exchange(1, std::memory_order_relaxed) == 0)
    left_.fetch_sub(1, std::memory_order_relaxed);
}

bool Verified::touch(std::span<const std::uint8_t> bytes, std::size_t threads,
                     const std::function<bool()>& poll) {
  if (all() || bytes.empty()) return true;
  const auto at = static_cast<std::size_t>(bytes.data() - data_.data());
  const std::size_t first = at / kChunkBytes;
  const std::size_t chunks = (at + bytes.size() - 1) / kChunkBytes + 1 - first;
  bool ended = false;
  split(
      chunks, threads, [] { return 0; },
      [&](int, std::size_t i, auto) {
        if (!whole(first + i)) compare(first + i);
      },
      [](int) {}, [&] { return ended = ended || poll(); });
  return !ended;
}

void Verified::ask(const std::uint8_t* first, std::size_t bytes) const {
#if defined(__linux__)
  if (all() || bytes == 0) return;
  const auto at = static_cast<std::size_t>(first - data_.data());
  for (std::size_t chunk = at / kChunkBytes; chunk <= (at + bytes - 1) / kChunkBytes; ++chunk)
    if (!whole(chunk)) advise(bytes_of(chunk), MADV_WILLNEED);
#else
  (void)first;
  (void)bytes;
#endif
}

}  // namespace simindex
