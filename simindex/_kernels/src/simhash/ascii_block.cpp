#include "simhash/ascii_block.hpp"

#include <bit>
#include <cstring>

#include "cpu/intrinsics.hpp"
#include "cpu/levels.hpp"

namespace simindex {
namespace {

constexpr std::size_t kBlock = 64;

std::uint64_t first(std::size_t size) {
  return size >= kBlock ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
}

AsciiBlock block_of(std::uint64_t other, std::uint64_t letters, std::uint64_t spaces,
                    std::size_t size) {
  const auto ascii = static_cast<std::size_t>(std::countr_zero(other | ~first(size)));
  const std::size_t shown = ascii < size ? ascii : size;
  return {shown, letters & first(shown), spaces & first(shown)};
}

// One code unit at a time: what the levels below do side by side.
template <class Char>
AsciiBlock portable_block(const Char* text, std::size_t size, std::uint8_t* lower) {
  std::uint64_t other = 0;
  std::uint64_t letters = 0;
  std::uint64_t spaces = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t c = text[i];
    const std::uint32_t folded = c - 'A' < 26 ? c + 32 : c;
    lower[i] = static_cast<std::uint8_t>(folded);
    other |= std::uint64_t{c >= 0x80} << i;
    const bool letter = folded - 'a' < 26 || c - '0' < 10 || c == '_';
    const bool space = c - 0x9 < 5 || c - 0x1c < 5;
    letters |= std::uint64_t{letter} << i;
    spaces |= std::uint64_t{space} << i;
  }
  return block_of(other, letters, spaces, size);
}

#if SIMINDEX_X86

SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE std::uint64_t mask_of(__m256i low, __m256i high) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
         (std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << 32);
}

// Where bytes are from `from` to `to`; bytes of 128 and more, negative here, never are.
SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE __m256i within(__m256i bytes, char from, char to) {
  return _mm256_and_si256(_mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(static_cast<char>(from - 1))),
                          _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(to + 1)), bytes));
}

SIMINDEX_TARGET_AVX2 SIMINDEX_INLINE AsciiBlock avx2_bytes(__m256i low, __m256i high,
                                                           std::size_t size, std::uint8_t* lower) {
  const __m256i bytes[2] = {low, high};
  __m256i letters[2];
  __m256i spaces[2];
  for (int i = 0; i < 2; ++i) {
    const __m256i upper = within(bytes[i], 'A', 'Z');
    const __m256i folded = _mm256_add_epi8(bytes[i], _mm256_and_si256(upper, _mm256_set1_epi8(32)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lower + 32 * i), folded);
    letters[i] = _mm256_or_si256(
        _mm256_or_si256(within(folded, 'a', 'z'), within(folded, '0', '9')),
        _mm256_cmpeq_epi8(folded, _mm256_set1_epi8('_')));
    spaces[i] = _mm256_or_si256(within(folded, 0x9, 0xd), within(folded, 0x1c, 0x20));
  }
  return block_of(mask_of(low, high), mask_of(letters[0], letters[1]), mask_of(spaces[0], spaces[1]),
                  size);
}

SIMINDEX_TARGET_AVX2 AsciiBlock avx2_block(const std::uint8_t* text, std::size_t size,
                                           std::uint8_t* lower) {
  std::uint8_t copy[kBlock];
  if (size < kBlock) {
    std::memset(copy, 0, kBlock);
    std::memcpy(copy, text, size);
    text = copy;
  }
  const auto* from = reinterpret_cast<const __m256i*>(text);
  return avx2_bytes(_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1), size, lower);
}

SIMINDEX_TARGET_AVX2 AsciiBlock avx2_block(const std::uint16_t* text, std::size_t size,
                                           std::uint8_t* lower) {
  std::uint16_t copy[kBlock];
  if (size < kBlock) {
    std::memset(copy, 0, sizeof copy);
    std::memcpy(copy, text, size * sizeof *text);
    text = copy;
  }
  const auto* from = reinterpret_cast<const __m256i*>(text);
  const __m256i most = _mm256_set1_epi16(0xff);
  __m256i packed[2];
  for (int i = 0; i < 2; ++i) {
    const __m256i a = _mm256_min_epu16(_mm256_loadu_si256(from + 2 * i), most);
    const __m256i b = _mm256_min_epu16(_mm256_loadu_si256(from + 2 * i + 1), most);
    packed[i] = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
  }
  return avx2_bytes(packed[0], packed[1], size, lower);
}

SIMINDEX_TARGET_AVX512 SIMINDEX_INLINE AsciiBlock avx512_bytes(__m512i bytes, std::size_t size,
                                                               std::uint8_t* lower) {
  const auto below = [](__m512i x, char from, char number) SIMINDEX_TARGET_AVX512 {
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(x, _mm512_set1_epi8(from)),
                                  _mm512_set1_epi8(number));
  };
  const __mmask64 upper = below(bytes, 'A', 26);
  const __m512i folded = _mm512_mask_add_epi8(bytes, upper, bytes, _mm512_set1_epi8(32));
  _mm512_storeu_si512(lower, folded);
  const __mmask64 letters = below(folded, 'a', 26) | below(folded, '0', 10) |
                            _mm512_cmpeq_epi8_mask(folded, _mm512_set1_epi8('_'));
  const __mmask64 spaces = below(folded, 0x9, 5) | below(folded, 0x1c, 5);
  return block_of(_mm512_movepi8_mask(bytes), letters, spaces, size);
}

SIMINDEX_TARGET_AVX512 AsciiBlock avx512_block(const std::uint8_t* text, std::size_t size,
                                               std::uint8_t* lower) {
  return avx512_bytes(_mm512_maskz_loadu_epi8(first(size), text), size, lower);
}

SIMINDEX_TARGET_AVX512 AsciiBlock avx512_block(const std::uint16_t* text, std::size_t size,
                                               std::uint8_t* lower) {
  const std::uint64_t present = first(size);
  const __m256i low = _mm512_cvtusepi16_epi8(
      _mm512_maskz_loadu_epi16(static_cast<__mmask32>(present), text));
  const __m256i high = _mm512_cvtusepi16_epi8(
      _mm512_maskz_loadu_epi16(static_cast<__mmask32>(present >> 32), text + 32));
  return avx512_bytes(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), size, lower);
}

#endif

}  // namespace

AsciiBlock ascii_block(const std::uint8_t* text, std::size_t size, std::uint8_t* lower, int level) {
#if SIMINDEX_X86
  if (level >= kAvx512) return avx512_block(text, size, lower);
  if (level >= kAvx2) return avx2_block(text, size, lower);
#else
  (void)level;
#endif
  return portable_block(text, size, lower);
}

AsciiBlock ascii_block(const std::uint16_t* text, std::size_t size, std::uint8_t* lower,
                       int level) {
#if SIMINDEX_X86
  if (level >= kAvx512) return avx512_block(text, size, lower);
  if (level >= kAvx2) return avx2_block(text, size, lower);
#else
  (void)level;
#endif
  return portable_block(text, size, lower);
}

// Texts of emoji and rare scripts only: no level of its own.
AsciiBlock ascii_block(const std::uint32_t* text, std::size_t size, std::uint8_t* lower, int) {
  return portable_block(text, size, lower);
}

}  // namespace simindex
