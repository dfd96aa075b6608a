#include <fcntl.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <sys/mount.h>
#endif

#include <cerrno>
#include <cstdio>
#include <string>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "cpu/levels.hpp"
#include "simhash/murmur3.hpp"
#include "storage/crc32c.hpp"
#include "storage/heap_offsets.hpp"
#include "storage/lmdb_pages.hpp"
#include "storage/siphash.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

std::uint32_t bind_crc32c(const In<std::uint8_t, 1>& data, std::uint32_t initial, int level) {
  ReleasedGil release;
  return crc32c(as_span(data), initial, resolve_level(level));
}

Out<std::uint32_t, 1> bind_crc32c_chunks(const In<std::uint8_t, 1>& data, std::int64_t chunk_bytes,
                                         std::uint64_t seed, std::uint64_t first_chunk, int level) {
  require(chunk_bytes > 0, "chunk_bytes must be at least 1");
  const auto size = static_cast<std::size_t>(chunk_bytes);
  const std::size_t bytes = data.shape(0);
  Fresh<std::uint32_t> sums(bytes / size + (bytes % size != 0));
  {
    ReleasedGil release;
    crc32c_chunks(as_span(data), size, seed, first_chunk, sums.span(), resolve_level(level));
  }
  return sums.release();
}

Out<std::uint64_t, 2> bind_murmur3(const In<std::uint8_t, 1>& data,
                                   const In<std::int64_t, 1>& offsets, std::uint32_t seed) {
  const std::span<const std::int64_t> at = as_span(offsets);
  require(!at.empty(), "offsets must hold at least one value, the start of the first string");
  const std::size_t n = at.size() - 1;
  Fresh<std::uint64_t> hashes(2 * n);
  {
    ReleasedGil release;
    require(offsets_hold(at, data.shape(0)), "offsets must rise and stay within the data");
    const std::uint8_t* const heap = data.data();
    std::uint64_t* out = hashes.data();
    for (std::size_t i = 0; i < n; ++i, out += 2) {
      const auto size = static_cast<std::size_t>(at[i + 1] - at[i]);
      const auto [low, high] = murmur3_x64_128(heap + at[i], size, seed);
      out[0] = low;
      out[1] = high;
    }
  }
  return hashes.release({n, 2});
}

Out<std::uint64_t, 2> bind_siphash(const In<std::uint8_t, 1>& data,
                                   const In<std::int64_t, 1>& offsets,
                                   const In<std::uint8_t, 1>& secret) {
  const std::span<const std::int64_t> at = as_span(offsets);
  require(!at.empty(), "offsets must hold at least one value, the start of the first string");
  require(secret.shape(0) == kSecretBytes, "secret must hold 16 bytes");
  const std::size_t n = at.size() - 1;
  Fresh<std::uint64_t> hashes(2 * n);
  {
    ReleasedGil release;
    require(offsets_hold(at, data.shape(0)), "offsets must rise and stay within the data");
    const SipState start = sip_start(as_span(secret).first<kSecretBytes>());
    const std::uint8_t* const heap = data.data();
    std::uint64_t* out = hashes.data();
    for (std::size_t i = 0; i < n; ++i, out += 2) {
      const auto size = static_cast<std::size_t>(at[i + 1] - at[i]);
      const auto [first, second] = siphash_128(start, heap + at[i], size);
      out[0] = first;
      out[1] = second;
    }
  }
  return hashes.release({n, 2});
}

// The hash of one key, for callers that have no heap: the GIL stays, since it takes about 50 ns.
std::pair<std::uint64_t, std::uint64_t> bind_siphash_key(const nb::bytes& key,
                                                         const nb::bytes& secret) {
  require(secret.size() == kSecretBytes, "secret must hold 16 bytes");
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(secret.c_str());
  return siphash_128(sip_start(std::span<const std::uint8_t, kSecretBytes>(bytes, kSecretBytes)),
                     reinterpret_cast<const std::uint8_t*>(key.c_str()), key.size());
}

// Has the kernel write bytes of a file to the disk, without a flush of it; returns errno or 0.
// With `wait` it returns when they are written. An error is told once: fsync would not tell it again.
// Elsewhere than on Linux the flush does it all.
int bind_write_back([[maybe_unused]] int fd, [[maybe_unused]] std::int64_t offset,
                    [[maybe_unused]] std::int64_t size, [[maybe_unused]] bool wait) {
#if defined(__linux__)
  ReleasedGil release;
  const unsigned flags = wait ? SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                    SYNC_FILE_RANGE_WAIT_AFTER
                              : SYNC_FILE_RANGE_WRITE;
  if (sync_file_range(fd, offset, size, flags) != 0) return errno;
#endif
  return 0;
}

// Gives two names each other's file at once; returns errno or 0.
int bind_exchange(const nb::bytes& path, const nb::bytes& other) {
  const char* const names[] = {path.c_str(), other.c_str()};
  ReleasedGil release;
#if defined(__APPLE__)
  return renamex_np(names[0], names[1], RENAME_SWAP) == 0 ? 0 : errno;
#else
  constexpr unsigned exchange = 2;  // RENAME_EXCHANGE, which older headers lack
  if (syscall(SYS_renameat2, AT_FDCWD, names[0], AT_FDCWD, names[1], exchange) != 0) return errno;
  return 0;
#endif
}

// The name of a path's file system, such as "smbfs"; "" on Linux, whose /proc/self/mountinfo tells
// more than a number, and where it cannot be told.
std::string bind_file_system([[maybe_unused]] const nb::bytes& path) {
#if defined(__APPLE__)
  struct statfs found;
  if (statfs(path.c_str(), &found) == 0) return found.f_fstypename;
#endif
  return "";
}

nb::tuple bind_check_pages(const In<std::uint8_t, 1>& file, const In<std::uint8_t, 1>& meta,
                           bool exact) {
  PageReport report;
  {
    nb::gil_scoped_release release;
    report = check_pages(as_span(file), as_span(meta), exact);
  }
  return nb::make_tuple(static_cast<int>(report.fault), report.page, report.pages);
}

}  // namespace

void bind_bytes(nb::module_& m) {
  m.def("crc32c", &bind_crc32c, "data"_a.noconvert(), "initial"_a = 0, "level"_a = -1);
  m.def("crc32c_chunks", &bind_crc32c_chunks, "data"_a.noconvert(), "chunk_bytes"_a, "seed"_a,
        "first_chunk"_a = 0, "level"_a = -1);
  m.def("murmur3", &bind_murmur3, "data"_a.noconvert(), "offsets"_a.noconvert(), "seed"_a = 0);
  m.def("siphash", &bind_siphash, "data"_a.noconvert(), "offsets"_a.noconvert(),
        "secret"_a.noconvert());
  m.def("siphash_key", &bind_siphash_key, "key"_a, "secret"_a);
  m.def("check_pages", &bind_check_pages, "file"_a.noconvert(), "meta"_a.noconvert(),
        "exact"_a = false);
  m.def("write_back", &bind_write_back, "fd"_a, "offset"_a, "size"_a, "wait"_a);
  m.def("exchange", &bind_exchange, "path"_a, "other"_a);
  m.def("file_system", &bind_file_system, "path"_a);
}

}  // namespace simindex
