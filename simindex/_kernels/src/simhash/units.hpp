// From a text to its units: words, or code points, folded and in UTF-8.
//
//   text      "Ein   Straßen-Fest, 漢字の"
//   words     "ein strassen fest 漢字 字の"   separated by one space; a run of letters of a script that
//              |   |        |    |    |       is written without spaces is given as its overlapping
//   starts     0   4        13   18   25      pairs, if `pairs` is asked for
//   chars     "ein strassen-fest, 漢字の"      one unit a code point; white space made one space, none
//                                             at the ends
//
// So an n-gram is one slice of the bytes, from the start of its first unit to the end of its last.
// A text is read in pieces; what is kept between them is the units that later n-grams need and the
// unit that is not complete yet, so memory does not grow with the text (only with its longest word).
//
// Blocks of 64 code units that begin with ASCII go the short way (`ascii_block`, three levels), others
// code point by code point through the tables of unicode.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "cpu/memory.hpp"

namespace simindex {

enum Unit : int { kWord = 0, kChar = 1 };

// How a text's code units are stored: a byte string in UTF-8, or Python's three kinds of str.
enum class Encoding : std::uint8_t { kUtf8, kLatin1, kUcs2, kUcs4 };

struct Text {
  const void* data = nullptr;
  std::size_t size = 0;  // in code units
  Encoding encoding = Encoding::kUtf8;
};

class Units {
 public:
  // Bytes that may be read, not used, behind the end of any unit.
  static constexpr std::size_t kPadding = 64;

  Units(int unit, bool pairs, int level);

  void begin(const Text& text);

  // Reads one more piece; false at the end of the text, or at bytes that are not UTF-8.
  bool read();

  // Where the bytes are not UTF-8, or kValid.
  static constexpr std::size_t kValid = std::numeric_limits<std::size_t>::max();
  std::size_t invalid_at() const { return invalid_at_; }

  // Complete units since `begin` or as far as kept.
  const std::uint8_t* bytes() const { return bytes_.get(); }
  std::span<const std::uint64_t> starts() const { return {starts_.get(), count_}; }
  std::span<const std::uint64_t> ends() const { return {ends_.get(), count_}; }

  // Forgets all complete units but the last `kept`.
  void keep(std::size_t kept);

 private:
  template <class Char>
  void read_units(const Char* text, std::size_t size);
  template <class Char>
  void read_block(const Char* text, std::size_t size);
  void read_utf8(const std::uint8_t* text, std::size_t size, std::size_t most);
  void put_words(const std::uint8_t* lower, std::uint64_t letters, std::size_t size);
  void put_chars(const std::uint8_t* lower, std::uint64_t spaces, std::size_t size);
  void put(std::uint32_t code_point);
  void put_word(std::uint32_t folded, std::uint8_t letter_class);
  void put_char(std::uint32_t folded, bool white_space);
  void write(std::uint32_t code_point);
  void open();
  void close();
  void reserve(std::size_t code_units);

  int unit_;
  bool pairs_;
  int level_;
  Text text_;
  std::size_t at_ = 0;
  std::size_t invalid_at_ = kValid;

  Memory<std::uint8_t> bytes_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  Memory<std::uint64_t> starts_;
  Memory<std::uint64_t> ends_;
  std::size_t most_units_ = 0;
  std::size_t count_ = 0;  // complete units; an open one has its start at starts_[count_]

  bool open_ = false;
  int paired_ = 0;               // letters of the open pair: 0 when the open unit is none, else 1 or 2
  std::uint32_t last_ = 0;       // the pair's last letter
  bool space_pending_ = false;   // chars: white space was read, which shows if something follows
  bool any_ = false;             // chars: something was read
};

}  // namespace simindex
