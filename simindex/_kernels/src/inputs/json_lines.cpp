#include "inputs/json_lines.hpp"

#include <algorithm>
#include <cstring>

namespace simindex {
namespace {

using Byte = const std::uint8_t*;

constexpr std::ptrdiff_t kBlock = 32;

bool is_digit(std::uint8_t byte) { return byte >= '0' && byte <= '9'; }

// Whether a byte of a string is neither its end, an escape, a control character nor other than ASCII.
bool is_plain(std::uint8_t byte) {
  return static_cast<std::int8_t>(byte) >= 0x20 && byte != '"' && byte != '\\';
}

// The first byte from there on that is not plain. Compilers turn the inner loop into a few vector
// instructions.
Byte past_plain(Byte at, Byte end) {
  while (end - at >= kBlock) {
    int found = 0;
    for (std::ptrdiff_t i = 0; i < kBlock; ++i) {
      found |= (static_cast<std::int8_t>(at[i]) < 0x20) | (at[i] == '"') | (at[i] == '\\');
    }
    if (found != 0) break;
    at += kBlock;
  }
  while (at != end && is_plain(*at)) ++at;
  return at;
}

// Bytes of the character of UTF-8 that begins there with a byte above 0x7f; 0 if it is none.
std::ptrdiff_t character_bytes(Byte at, Byte end) {
  const std::uint8_t first = at[0];
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::ptrdiff_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (end - at < size) return 0;
  // The second byte keeps out what has a shorter form, surrogates, and what is above U+10FFFF.
  std::uint8_t low = 0x80, high = 0xbf;
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  if (at[1] < low || at[1] > high) return 0;
  for (std::ptrdiff_t i = 2; i < size; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  return size;
}

// The value of four hexadecimal digits; -1 if they are none.
int hexadecimal(Byte at, Byte end) {
  if (end - at < 4) return -1;
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint8_t byte = at[i];
    const std::uint8_t lower = byte | 0x20;
    if (is_digit(byte)) {
      value = 16 * value + (byte - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = 16 * value + (lower - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

// Writes a character that is no surrogate in UTF-8; where that ends.
std::uint8_t* encoded(std::uint32_t character, std::uint8_t* out) {
  const auto tail = [&](int shift) {
    *out++ = static_cast<std::uint8_t>(0x80 | ((character >> shift) & 0x3f));
  };
  if (character < 0x80) {
    *out++ = static_cast<std::uint8_t>(character);
  } else if (character < 0x800) {
    *out++ = static_cast<std::uint8_t>(0xc0 | (character >> 6));
    tail(0);
  } else if (character < 0x10000) {
    *out++ = static_cast<std::uint8_t>(0xe0 | (character >> 12));
    tail(6);
    tail(0);
  } else {
    *out++ = static_cast<std::uint8_t>(0xf0 | (character >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
  return out;
}

// What a short escape stands for; 0 if there is no such escape.
std::uint8_t escaped(std::uint8_t byte) {
  switch (byte) {
    case '"':
    case '\\':
    case '/':
      return byte;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

// One line. Each function moves on behind what it has read, and returns false where it cannot.
class Line {
 public:
  Line(std::span<const std::uint8_t> line, const JsonFields& fields, std::uint8_t* text,
       std::uint8_t* key)
      : at_(line.data()), end_(line.data() + line.size()), fields_(fields),
        text_(text), key_(key) {}

  bool document() {
    if (!object() || (spaces(), at_ != end_)) return false;
    const auto bytes = static_cast<std::size_t>(key_end_ - key_);
    return has_text_ && has_key_ && bytes != 0 && bytes <= fields_.most_key &&
           std::all_of(key_, key_end_, [](std::uint8_t byte) { return byte < 0x80; });
  }

  std::uint8_t* text_end() const { return text_end_; }
  std::uint8_t* key_end() const { return key_end_; }

 private:
  void spaces() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }

  bool take(std::uint8_t byte) {
    if (at_ == end_ || *at_ != byte) return false;
    ++at_;
    return true;
  }

  bool object() {
    spaces();
    if (!take('{')) return false;
    spaces();
    if (take('}')) return true;
    do {
      spaces();
      if (!take('"')) return false;
      const Byte name = at_;
      bool without_escapes = true;
      if (!string(nullptr, nullptr, &without_escapes) || !without_escapes) return false;
      const std::span<const std::uint8_t> named(name, at_ - 1);
      spaces();
      if (!take(':')) return false;
      spaces();
      if (!field(same(named, fields_.text), same(named, fields_.key))) return false;
      spaces();
    } while (take(','));
    return take('}');
  }

  static bool same(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other) {
    return one.size() == other.size() &&
           (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
  }

  bool field(bool is_text, bool is_key) {
    if (is_text) has_text_ = false;
    if (is_key) has_key_ = false;
    if (is_key && at_ != end_ && *at_ != '"') return whole_number();
    if (!(is_text || is_key) || at_ == end_ || *at_ != '"') return value(1);
    const Byte begin = ++at_;
    if (is_text) {
      text_end_ = text_;
      if (!string(text_, &text_end_, nullptr)) return false;
      has_text_ = true;
    }
    if (is_key) {
      at_ = begin;
      key_end_ = key_;
      if (!string(key_, &key_end_, nullptr)) return false;
      has_key_ = true;
    }
    return true;
  }

  // A value of the key field that is no string: a whole number is a key by its digits.
  bool whole_number() {
    const Byte begin = at_;
    if (!value(1)) return false;
    const Byte first = *begin == '-' ? begin + 1 : begin;
    if (first == at_ || !std::all_of(first, at_, is_digit) || (first != begin && *first == '0')) {
      return true;
    }
    std::memcpy(key_, begin, static_cast<std::size_t>(at_ - begin));
    key_end_ = key_ + (at_ - begin);
    has_key_ = true;
    return true;
  }

  bool value(std::size_t depth) {
    if (at_ == end_) return false;
    switch (*at_) {
      case '"':
        ++at_;
        return string(nullptr, nullptr, nullptr);
      case '{':
        return members(depth, '}');
      case '[':
        return members(depth, ']');
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  // What is in an inner object or a list.
  bool members(std::size_t depth, std::uint8_t closes) {
    if (depth > kJsonNesting) return false;
    ++at_;
    spaces();
    if (take(closes)) return true;
    do {
      spaces();
      if (closes == '}') {
        if (!take('"') || !string(nullptr, nullptr, nullptr)) return false;
        spaces();
        if (!take(':')) return false;
        spaces();
      }
      if (!value(depth + 1)) return false;
      spaces();
    } while (take(','));
    return take(closes);
  }

  bool word(const char* letters) {
    for (; *letters != '\0'; ++letters) {
      if (!take(static_cast<std::uint8_t>(*letters))) return false;
    }
    return true;
  }

  bool digits() {
    const Byte begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool number() {
    const Byte begin = at_;
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('-')) take('+');
      if (!digits()) return false;
    }
    return static_cast<std::size_t>(at_ - begin) <= kJsonNumber;
  }

  // The rest of a string and the quote that ends it, without escapes at `out` unless that is null.
  bool string(std::uint8_t* out, std::uint8_t** out_end, bool* without_escapes) {
    const auto copy = [&](Byte from, Byte to) {
      if (out == nullptr || from == to) return;
      std::memcpy(out, from, static_cast<std::size_t>(to - from));
      out += to - from;
    };
    Byte begin = at_;
    while (true) {
      at_ = past_plain(at_, end_);
      if (at_ == end_) return false;
      const std::uint8_t byte = *at_;
      if (byte >= 0x80) {
        const std::ptrdiff_t size = character_bytes(at_, end_);
        if (size == 0) return false;
        at_ += size;
        continue;
      }
      copy(begin, at_);
      ++at_;
      if (byte == '"') break;
      if (byte != '\\') return false;
      if (without_escapes != nullptr) *without_escapes = false;
      if (at_ == end_) return false;
      if (*at_ == 'u') {
        ++at_;
        std::uint32_t character = 0;
        if (!code_point(character)) return false;
        if (out != nullptr) out = encoded(character, out);
      } else {
        const std::uint8_t stands_for = escaped(*at_++);
        if (stands_for == 0) return false;
        if (out != nullptr) *out++ = stands_for;
      }
      begin = at_;
    }
    if (out_end != nullptr) *out_end = out;
    return true;
  }

  // What follows "\u": the digits of a character, or of both halves of a surrogate pair.
  bool code_point(std::uint32_t& character) {
    const int first = hexadecimal(at_, end_);
    if (first < 0) return false;
    at_ += 4;
    character = static_cast<std::uint32_t>(first);
    if (first < 0xd800 || first > 0xdfff) return true;
    if (first > 0xdbff || !take('\\') || !take('u')) return false;
    const int second = hexadecimal(at_, end_);
    if (second < 0xdc00 || second > 0xdfff) return false;
    at_ += 4;
    character = 0x10000 + ((character - 0xd800) << 10) + (static_cast<std::uint32_t>(second) - 0xdc00);
    return true;
  }

  Byte at_;
  const Byte end_;
  const JsonFields& fields_;
  std::uint8_t* const text_;
  std::uint8_t* const key_;
  std::uint8_t* text_end_ = text_;
  std::uint8_t* key_end_ = key_;
  bool has_text_ = false;
  bool has_key_ = false;
};

}  // namespace

std::size_t count_lines(std::span<const std::uint8_t> block) {
  const auto ends = static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n'));
  return ends + (!block.empty() && block.back() != '\n');
}

void json_lines(std::span<const std::uint8_t> block, const JsonFields& fields,
                std::span<std::int64_t> starts, std::span<std::uint8_t> plain,
                std::uint8_t* texts, std::span<std::int64_t> text_ends, std::uint8_t* keys,
                std::span<std::int64_t> key_ends) {
  std::size_t at = 0, text_end = 0, key_end = 0;
  starts[0] = text_ends[0] = key_ends[0] = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto* const feed = static_cast<Byte>(std::memchr(block.data() + at, '\n', block.size() - at));
    const std::size_t end =
        feed == nullptr ? block.size() : static_cast<std::size_t>(feed - block.data()) + 1;
    plain[i] = 0;
    if (end - at <= fields.most_line) {
      Line line(block.subspan(at, end - at), fields, texts + text_end, keys + key_end);
      if (line.document()) {
        plain[i] = 1;
        text_end = static_cast<std::size_t>(line.text_end() - texts);
        key_end = static_cast<std::size_t>(line.key_end() - keys);
      }
    }
    starts[i + 1] = static_cast<std::int64_t>(end);
    text_ends[i + 1] = static_cast<std::int64_t>(text_end);
    key_ends[i + 1] = static_cast<std::int64_t>(key_end);
    at = end;
  }
}

}  // namespace simindex
