// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), the checksum of everything on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

// The checksum of `data`, continuing from the checksum `initial` of what came before it (0: nothing).
// `level` is a resolved level of cpu/levels.hpp: 0 reads tables, 8 bytes a step; from 1 on the processor's
// CRC instruction runs on three stretches at once, because it gives a result only every third cycle.
std::uint32_t crc32c(std::span<const std::uint8_t> data, std::uint32_t initial, int level);

// Checksums of the chunks of `data`: chunk i begins at i * chunk_bytes, the last may be shorter, and
// `sums` has one place for each. A sum continues from that of the 16 bytes le64(seed)
// le64(first_chunk + i), so a chunk found in another place or another file does not match its sum.
void crc32c_chunks(std::span<const std::uint8_t> data, std::size_t chunk_bytes, std::uint64_t seed,
                   std::uint64_t first_chunk, std::span<std::uint32_t> sums, int level);

}  // namespace simindex
