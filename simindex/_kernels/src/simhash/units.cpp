#include "simhash/units.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "simhash/ascii_block.hpp"
#include "simhash/unicode.hpp"

namespace simindex {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 14;  // code units read at once
constexpr std::size_t kBlock = 64;
constexpr std::size_t kShortBlock = 8;  // shorter ASCII is not worth a block

// Most bytes that one code unit adds: three folded code points of 4 bytes and a space, or a letter,
// a space and the letter before it once more.
constexpr std::size_t kMostBytes = 13;
constexpr std::size_t kMostUnits = 6;  // and most units: three code points, each after a space

// The code point that starts at `text`, and its bytes in `length`; kInvalid where there is none, by
// the rules of Unicode (no overlong forms, no surrogates).
constexpr std::uint32_t kInvalid = 0xffffffff;

std::uint32_t decode(const std::uint8_t* text, std::size_t size, std::size_t& length) {
  const std::uint32_t lead = text[0];
  const auto following = [&](std::size_t i) -> bool { return i < size && (text[i] & 0xc0) == 0x80; };
  if (lead < 0x80) {
    length = 1;
    return lead;
  }
  if (lead >= 0xc2 && lead < 0xe0 && following(1)) {
    length = 2;
    return ((lead & 0x1f) << 6) | (text[1] & 0x3fu);
  }
  if (lead >= 0xe0 && lead < 0xf0 && following(1) && following(2)) {
    const std::uint32_t c = ((lead & 0xf) << 12) | ((text[1] & 0x3fu) << 6) | (text[2] & 0x3fu);
    length = 3;
    return c >= 0x800 && (c < 0xd800 || c > 0xdfff) ? c : kInvalid;
  }
  if (lead >= 0xf0 && lead < 0xf5 && following(1) && following(2) && following(3)) {
    const std::uint32_t c = ((lead & 0x7) << 18) | ((text[1] & 0x3fu) << 12) |
                            ((text[2] & 0x3fu) << 6) | (text[3] & 0x3fu);
    length = 4;
    return c >= 0x10000 && c <= kMostCodePoint ? c : kInvalid;
  }
  return kInvalid;
}

}  // namespace

Units::Units(int unit, bool pairs, int level) : unit_(unit), pairs_(pairs), level_(level) {}

void Units::begin(const Text& text) {
  text_ = text;
  at_ = 0;
  invalid_at_ = kValid;
  used_ = 0;
  count_ = 0;
  open_ = false;
  paired_ = 0;
  space_pending_ = false;
  any_ = false;
}

bool Units::read() {
  const std::size_t size = std::min(kPiece, text_.size - at_);
  reserve(size);
  switch (text_.encoding) {
    case Encoding::kUtf8:
      read_utf8(static_cast<const std::uint8_t*>(text_.data), text_.size, at_ + size);
      break;
    case Encoding::kLatin1:
      read_units(static_cast<const std::uint8_t*>(text_.data) + at_, size);
      break;
    case Encoding::kUcs2:
      read_units(static_cast<const std::uint16_t*>(text_.data) + at_, size);
      break;
    case Encoding::kUcs4:
      read_units(static_cast<const std::uint32_t*>(text_.data) + at_, size);
      break;
  }
  if (invalid_at_ != kValid) return false;
  if (at_ < text_.size) return true;
  if (open_) close();
  return false;
}

// ASCII by blocks, anything else one by one until ASCII goes on for a while.
template <class Char>
void Units::read_units(const Char* text, std::size_t size) {
  at_ += size;
  std::size_t i = 0;
  while (i < size) {
    const std::size_t ahead = std::min(kShortBlock, size - i);
    bool ascii = true;
    for (std::size_t j = 0; j < ahead; ++j) ascii = ascii && text[i + j] < 0x80;
    if (!ascii) {
      for (std::size_t j = 0; j < ahead; ++j) {
        const std::uint32_t c = text[i + j];
        put(c <= kMostCodePoint ? c : 0xfffd);
      }
      i += ahead;
      continue;
    }
    alignas(kBlock) std::uint8_t lower[2 * kBlock];
    const AsciiBlock block = ascii_block(text + i, std::min(kBlock, size - i), lower, level_);
    if (unit_ == kWord) {
      put_words(lower, block.letters, block.size);
    } else {
      put_chars(lower, block.spaces, block.size);
    }
    i += block.size;
  }
}

// Reads from at_ until `most` or, within a code point, a little beyond.
void Units::read_utf8(const std::uint8_t* text, std::size_t size, std::size_t most) {
  while (at_ < most) {
    if (text[at_] < 0x80) {
      alignas(kBlock) std::uint8_t lower[2 * kBlock];
      const AsciiBlock block =
          ascii_block(text + at_, std::min(kBlock, most - at_), lower, level_);
      if (unit_ == kWord) {
        put_words(lower, block.letters, block.size);
      } else {
        put_chars(lower, block.spaces, block.size);
      }
      at_ += block.size;
      continue;
    }
    std::size_t length = 0;
    const std::uint32_t c = decode(text + at_, size - at_, length);
    if (c == kInvalid) {
      invalid_at_ = at_;
      return;
    }
    put(c);
    at_ += length;
  }
}

// The words of a block of ASCII. Copies 16 bytes at a time, so up to 15 beyond a word: the buffers
// have room, and the next word writes over them.
void Units::put_words(const std::uint8_t* lower, std::uint64_t letters, std::size_t size) {
  if (open_ && ((letters & 1) == 0 || paired_ != 0)) close();
  while (letters != 0) {
    const auto begin = static_cast<std::size_t>(std::countr_zero(letters));
    const auto length = static_cast<std::size_t>(std::countr_one(letters >> begin));
    if (!open_) open();
    for (std::size_t i = 0; i < length; i += 16) {
      std::memcpy(bytes_.get() + used_ + i, lower + begin + i, 16);
    }
    used_ += length;
    if (begin + length >= size) return;  // the word may go on behind the block
    close();
    letters &= ~std::uint64_t{0} << (begin + length);
  }
}

void Units::put_chars(const std::uint8_t* lower, std::uint64_t spaces, std::size_t size) {
  std::size_t i = 0;
  while (i < size) {
    const auto skipped = std::min(static_cast<std::size_t>(std::countr_one(spaces >> i)), size - i);
    if (skipped != 0) {
      space_pending_ = any_;
      i += skipped;
      continue;
    }
    const std::size_t length =
        std::min(static_cast<std::size_t>(std::countr_zero(spaces >> i)), size - i);
    put_char(lower[i], false);
    std::memcpy(bytes_.get() + used_, lower + i + 1, length - 1);
    for (std::size_t j = 0; j + 1 < length; ++j) {
      starts_[count_ + j] = used_ + j;
      ends_[count_ + j] = used_ + j + 1;
    }
    used_ += length - 1;
    count_ += length - 1;
    i += length;
  }
}

void Units::put(std::uint32_t code_point) {
  const CodePoint& kind = kind_of(code_point);
  if ((kind.flags & kSeveral) == 0) {
    const std::uint32_t folded = code_point + static_cast<std::uint32_t>(kind.delta);
    if (unit_ == kWord) {
      put_word(folded, kind.flags & kClassBits);
    } else {
      put_char(folded, (kind.flags & kWhiteSpace) != 0);
    }
    return;
  }
  const std::uint32_t* const expansion = expansion_of(kind);
  for (std::uint32_t i = 1; i <= expansion[0]; ++i) {
    const std::uint8_t flags = kind_of(expansion[i]).flags;
    if (unit_ == kWord) {
      put_word(expansion[i], flags & kClassBits);
    } else {
      put_char(expansion[i], (flags & kWhiteSpace) != 0);
    }
  }
}

void Units::put_word(std::uint32_t folded, std::uint8_t letter_class) {
  if (letter_class == kSeparator) {
    if (open_) close();
    return;
  }
  const bool paired = pairs_ && (letter_class == kUnspaced || (letter_class == kMark && paired_ != 0));
  if (!paired) {
    if (paired_ != 0) close();
    if (!open_) open();
    write(folded);
    return;
  }
  if (paired_ == 0) {
    if (open_) close();
    open();
    paired_ = 1;
  } else if (paired_ == 1) {
    paired_ = 2;
  } else {
    const std::uint32_t before = last_;
    close();
    open();
    write(before);
    paired_ = 2;
  }
  write(folded);
  last_ = folded;
}

void Units::put_char(std::uint32_t folded, bool white_space) {
  if (white_space) {
    space_pending_ = any_;
    return;
  }
  if (space_pending_) {
    starts_[count_] = used_;
    write(' ');
    ends_[count_++] = used_;
    space_pending_ = false;
  }
  starts_[count_] = used_;
  write(folded);
  ends_[count_++] = used_;
  any_ = true;
}

void Units::write(std::uint32_t c) {
  std::uint8_t* const to = bytes_.get() + used_;
  if (c < 0x80) {
    to[0] = static_cast<std::uint8_t>(c);
    used_ += 1;
  } else if (c < 0x800) {
    to[0] = static_cast<std::uint8_t>(0xc0 | (c >> 6));
    to[1] = static_cast<std::uint8_t>(0x80 | (c & 0x3f));
    used_ += 2;
  } else if (c < 0x10000) {
    to[0] = static_cast<std::uint8_t>(0xe0 | (c >> 12));
    to[1] = static_cast<std::uint8_t>(0x80 | ((c >> 6) & 0x3f));
    to[2] = static_cast<std::uint8_t>(0x80 | (c & 0x3f));
    used_ += 3;
  } else {
    to[0] = static_cast<std::uint8_t>(0xf0 | (c >> 18));
    to[1] = static_cast<std::uint8_t>(0x80 | ((c >> 12) & 0x3f));
    to[2] = static_cast<std::uint8_t>(0x80 | ((c >> 6) & 0x3f));
    to[3] = static_cast<std::uint8_t>(0x80 | (c & 0x3f));
    used_ += 4;
  }
}

void Units::open() {
  if (count_ != 0) bytes_[used_++] = ' ';
  starts_[count_] = used_;
  open_ = true;
  paired_ = 0;
}

void Units::close() {
  ends_[count_++] = used_;
  open_ = false;
  paired_ = 0;
}

void Units::keep(std::size_t kept) {
  const std::size_t forgotten = count_ - std::min(kept, count_);
  if (forgotten == 0) return;
  // What comes next begins the buffer: the first unit kept, the open unit, or nothing.
  const bool followed = forgotten < count_ || open_;
  const std::size_t from = followed ? starts_[forgotten] : used_;
  std::memmove(bytes_.get(), bytes_.get() + from, used_ - from);
  used_ -= from;
  count_ -= forgotten;
  for (std::size_t i = 0; i < count_; ++i) {
    starts_[i] = starts_[forgotten + i] - from;
    ends_[i] = ends_[forgotten + i] - from;
  }
  if (open_) starts_[count_] = starts_[forgotten + count_] - from;
}

void Units::reserve(std::size_t code_units) {
  const std::size_t bytes = used_ + kMostBytes * (code_units + 4) + kPadding + kBlock;
  if (bytes > capacity_) {
    const std::size_t capacity = std::max(bytes, capacity_ + capacity_ / 2);
    Memory<std::uint8_t> grown = allocate<std::uint8_t>(capacity);
    if (used_ != 0) std::memcpy(grown.get(), bytes_.get(), used_);
    bytes_ = std::move(grown);
    capacity_ = capacity;
  }
  const std::size_t units = count_ + kMostUnits * (code_units + 4) + 1;
  if (units > most_units_) {
    Memory<std::uint64_t> starts = allocate<std::uint64_t>(units);
    Memory<std::uint64_t> ends = allocate<std::uint64_t>(units);
    if (starts_) std::copy(starts_.get(), starts_.get() + count_ + 1, starts.get());
    if (ends_) std::copy(ends_.get(), ends_.get() + count_, ends.get());
    starts_ = std::move(starts);
    ends_ = std::move(ends);
    most_units_ = units;
  }
}

}  // namespace simindex
