#include "storage/crc32c.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cpu/levels.hpp"

#if SIMINDEX_X86
#include <nmmintrin.h>
#define SIMINDEX_CRC_INSTRUCTION 1
#define SIMINDEX_TARGET_CRC __attribute__((target("sse4.2,crc32")))
#define SIMINDEX_CRC_8 _mm_crc32_u64
#define SIMINDEX_CRC_1 _mm_crc32_u8
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define SIMINDEX_CRC_INSTRUCTION 1
#define SIMINDEX_TARGET_CRC
#define SIMINDEX_CRC_8 __crc32cd
#define SIMINDEX_CRC_1 __crc32cb
#else
#define SIMINDEX_CRC_INSTRUCTION 0
#endif

namespace simindex {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint32_t kPolynomial = 0x82F63B78;

using Table = std::array<std::uint32_t, 256>;

constexpr Table byte_table() {
  Table table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) * kPolynomial);
    table[byte] = crc;
  }
  return table;
}

// kTables[k][b]: what the byte b becomes once k zero bytes have followed it.
constexpr std::array<Table, 8> slicing_tables() {
  std::array<Table, 8> tables{};
  tables[0] = byte_table();
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 255];
    }
  }
  return tables;
}

constexpr std::array<Table, 8> kTables = slicing_tables();

std::uint64_t load_word(const std::uint8_t* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, 8);
  return word;
}

// Both update functions work on the register: the checksum with all bits inverted.
std::uint32_t update_by_tables(std::uint32_t crc, const std::uint8_t* p, std::size_t size) {
  for (; size >= 8; p += 8, size -= 8) {
    const std::uint64_t word = load_word(p) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 255];
  }
  for (; size > 0; ++p, --size) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 255];
  return crc;
}

#if SIMINDEX_CRC_INSTRUCTION

// The register after `Bytes` zero bytes, a linear map over GF(2), as four tables of one byte each.
template <std::size_t Bytes>
struct Shift {
  static_assert(std::has_single_bit(Bytes));

  static constexpr std::array<Table, 4> make() {
    std::array<std::uint32_t, 32> columns{};  // images of the single bits
    const Table step = byte_table();
    for (std::size_t bit = 0; bit < 32; ++bit) {
      const std::uint32_t crc = std::uint32_t{1} << bit;
      columns[bit] = (crc >> 8) ^ step[crc & 255];
    }
    const auto apply = [](const std::array<std::uint32_t, 32>& map, std::uint32_t crc) {
      std::uint32_t image = 0;
      for (std::size_t bit = 0; bit < 32; ++bit) image ^= ((crc >> bit) & 1) * map[bit];
      return image;
    };
    for (std::size_t bytes = 1; bytes < Bytes; bytes *= 2) {
      std::array<std::uint32_t, 32> twice{};
      for (std::size_t bit = 0; bit < 32; ++bit) twice[bit] = apply(columns, columns[bit]);
      columns = twice;
    }
    std::array<Table, 4> tables{};
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::uint32_t byte = 0; byte < 256; ++byte) {
        tables[k][byte] = apply(columns, byte << (8 * k));
      }
    }
    return tables;
  }

  static constexpr std::array<Table, 4> kMap = make();

  static std::uint32_t apply(std::uint32_t crc) {
    return kMap[0][crc & 255] ^ kMap[1][(crc >> 8) & 255] ^ kMap[2][(crc >> 16) & 255] ^
           kMap[3][crc >> 24];
  }
};

//   | Stretch | Stretch | Stretch |   three registers at once, joined by shifting the earlier ones
//   a         b         c
template <std::size_t Stretch>
SIMINDEX_TARGET_CRC void update_three(std::uint32_t& crc, const std::uint8_t*& p,
                                      std::size_t& size) {
  while (size >= 3 * Stretch) {
    std::uint64_t a = crc;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t at = 0; at < Stretch; at += 8) {
      a = SIMINDEX_CRC_8(static_cast<std::uint32_t>(a), load_word(p + at));
      b = SIMINDEX_CRC_8(static_cast<std::uint32_t>(b), load_word(p + Stretch + at));
      c = SIMINDEX_CRC_8(static_cast<std::uint32_t>(c), load_word(p + 2 * Stretch + at));
    }
    crc = Shift<Stretch>::apply(static_cast<std::uint32_t>(a)) ^ static_cast<std::uint32_t>(b);
    crc = Shift<Stretch>::apply(crc) ^ static_cast<std::uint32_t>(c);
    p += 3 * Stretch;
    size -= 3 * Stretch;
  }
}

SIMINDEX_TARGET_CRC std::uint32_t update_by_instruction(std::uint32_t crc, const std::uint8_t* p,
                                                        std::size_t size) {
  update_three<2048>(crc, p, size);
  update_three<128>(crc, p, size);
  for (; size >= 8; p += 8, size -= 8) {
    crc = static_cast<std::uint32_t>(SIMINDEX_CRC_8(crc, load_word(p)));
  }
  for (; size > 0; ++p, --size) crc = SIMINDEX_CRC_1(crc, *p);
  return crc;
}

bool has_instruction([[maybe_unused]] int level) {
#if SIMINDEX_X86
  static const bool runs = __builtin_cpu_supports("sse4.2");
  return runs && level >= kAvx2;
#else
  return true;
#endif
}

#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> data, std::uint32_t initial,
                     [[maybe_unused]] int level) {
#if SIMINDEX_CRC_INSTRUCTION
  if (has_instruction(level)) return ~update_by_instruction(~initial, data.data(), data.size());
#endif
  return ~update_by_tables(~initial, data.data(), data.size());
}

void crc32c_chunks(std::span<const std::uint8_t> data, std::size_t chunk_bytes, std::uint64_t seed,
                   std::uint64_t first_chunk, std::span<std::uint32_t> sums, int level) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t place[2] = {seed, first_chunk + i};
    std::uint8_t prefix[16];
    std::memcpy(prefix, place, 16);
    const std::size_t begin = i * chunk_bytes;
    const std::size_t size = std::min(chunk_bytes, data.size() - begin);
    sums[i] = crc32c(data.subspan(begin, size), crc32c(prefix, 0, level), level);
  }
}

}  // namespace simindex
