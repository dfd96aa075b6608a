// Bytes on a map that are compared with their checksums when they are first touched.
//
//     data      |  chunk 0  |  chunk 1  |  ...      kChunkBytes each, the last may be shorter
//     sums         sum         sum                  what crc32c_chunks makes of them, from `seed`
//     whole        1           0                    1 once its bytes were found to have that sum
//
// Every reader of such bytes says so first: touch() returns when all chunks that hold them are whole,
// or throws. Threads may meet at a chunk; then both compare it, and both set the same mark.
//
// 1. A mark is never taken back. Bytes that change after their chunk was marked are not noticed.
// 2. Once all are marked, a touch costs one load; before, one for each chunk: 7 KB of marks for 60 M
//    rows of 64 bits stay in the first-level cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace simindex {

// Where in which file bytes are that are not what was written.
struct DamagedChunk : std::exception {
  DamagedChunk(std::string path, std::string remedy, std::uint64_t offset, std::size_t bytes,
               bool readable)
      : path(std::move(path)), remedy(std::move(remedy)), offset(offset), bytes(bytes),
        readable(readable) {}

  std::string path;
  std::string remedy;
  std::uint64_t offset;
  std::size_t bytes;
  bool readable;  // false: the file was cut short while it was mapped, or the disk fails
};

class Verified {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

  // `data` is borrowed: whoever holds this holds the map. It begins at `offset` of the file `path`.
  Verified(std::span<const std::uint8_t> data, std::span<const std::uint32_t> sums,
           std::uint64_t seed, std::string path, std::uint64_t offset, std::string remedy);

  std::span<const std::uint8_t> data() const { return data_; }
  bool holds(const void* first, std::size_t bytes) const {
    const auto at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(first) - data_.data());
    return at <= data_.size() && bytes <= data_.size() - at;
  }
  // Chunks that are not marked yet.
  std::size_t left() const { return left_.load(std::memory_order_relaxed); }
  bool all() const { return left() == 0; }

  // Before `count` values from `first` on are read, which lie within the data.
  template <class T>
  void touch(const T* first, std::size_t count) {
    if (all() || count == 0) [[likely]]
      return;
    touch_bytes(reinterpret_cast<const std::uint8_t*>(first), count * sizeof(T));
  }

  // The same for many bytes, by some threads. `poll` as in workers.hpp; false if it ended the work.
  bool touch(std::span<const std::uint8_t> bytes, std::size_t threads,
             const std::function<bool()>& poll);

  // Has the system read what is not marked of some bytes, and no more of the file.
  void ask(const std::uint8_t* first, std::size_t bytes) const;

 private:
  bool whole(std::size_t chunk) const {
    return whole_[chunk].load(std::memory_order_relaxed) != 0;
  }
  void touch_bytes(const std::uint8_t* first, std::size_t bytes) {
    const auto at = static_cast<std::size_t>(first - data_.data());
    const std::size_t last = (at + bytes - 1) / kChunkBytes;
    for (std::size_t chunk = at / kChunkBytes; chunk <= last; ++chunk)
      if (!whole(chunk)) compare(chunk);
  }
  std::span<const std::uint8_t> bytes_of(std::size_t chunk) const;
  [[gnu::noinline, gnu::cold]] void compare(std::size_t chunk);

  std::span<const std::uint8_t> data_;
  std::unique_ptr<std::uint32_t[]> sums_;
  std::uint64_t seed_;
  std::string path_;
  std::uint64_t offset_;
  std::string remedy_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> whole_;
  std::atomic<std::size_t> left_;
};

}  // namespace simindex
