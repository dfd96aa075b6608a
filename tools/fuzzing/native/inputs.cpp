// Bytes of files: JSON lines as columns, results written into such lines, and what a page has of tags.
#include <algorithm>
#include <vector>

#include "input.hpp"
#include "inputs/json_lines.hpp"
#include "inputs/page_tags.hpp"
#include "inputs/spliced_lines.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

namespace {

using Bytes = std::span<const std::uint8_t>;

// Often what JSON, HTML and the fields below are made of, so that lines are documents and tags end.
void write(Input& in, Array<std::uint8_t>& out) {
  static constexpr const char* kPieces[] = {
      "{\"text\":\"", "\",\"id\":\"", "\"}\n",  "\",\"id\":", "\\u00e9", "\\ud83d\\ude00", "\\n",  "[{\"a\":",
      "}]",           "\xc3\xa9",     "\xf0\x9f\x98\x80", "null", "-0.5e3",  "<div a=\"b\" c>", "</b>", "<b>"};
  for (std::size_t at = 0; at < out.size;) {
    const std::uint8_t byte = in.byte();
    if (byte < 0xf8) {  // above are none of UTF-8
      out[at++] = byte;
      continue;
    }
    const char* piece = kPieces[in.byte() % std::size(kPieces)];
    for (; *piece != '\0' && at < out.size; ++piece)
      out[at++] = static_cast<std::uint8_t>(*piece);
  }
}

struct Columns {
  explicit Columns(Bytes block, const JsonFields& fields)
      : lines(count_lines(block)), starts(lines + 1), text_ends(lines + 1), key_ends(lines + 1),
        plain(lines), texts(block.size()), keys(block.size()) {
    json_lines(block, fields, starts, plain, texts.data, text_ends, keys.data, key_ends);
  }

  Bytes text(std::size_t i) const { return part(texts, text_ends, i); }
  Bytes key(std::size_t i) const { return part(keys, key_ends, i); }
  static Bytes part(const Array<std::uint8_t>& all, const Array<std::int64_t>& ends, std::size_t i) {
    return Bytes(all.data + ends.data[i], static_cast<std::size_t>(ends.data[i + 1] - ends.data[i]));
  }

  std::size_t lines;
  Array<std::int64_t> starts, text_ends, key_ends;
  Array<std::uint8_t> plain, texts, keys;
};

bool same(Bytes one, Bytes other) { return std::ranges::equal(one, other); }

bool is_white(std::uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Each line is what it is by itself.
void lines(const Columns& all, Bytes block, const JsonFields& fields) {
  REQUIRE(all.starts.data[0] == 0);
  REQUIRE(all.starts.data[all.lines] == static_cast<std::int64_t>(block.size()));
  for (std::size_t i = 0; i < all.lines; ++i) {
    const Bytes line = block.subspan(static_cast<std::size_t>(all.starts.data[i]),
                                     static_cast<std::size_t>(all.starts.data[i + 1] - all.starts.data[i]));
    REQUIRE(std::find(line.begin(), line.end() - 1, '\n') == line.end() - 1);
    REQUIRE(all.plain.data[i] <= 1);
    REQUIRE(all.plain.data[i] == 1 || (all.text(i).empty() && all.key(i).empty()));
    REQUIRE(all.key(i).size() <= fields.most_key && (all.plain.data[i] == 0 || !all.key(i).empty()));
    REQUIRE(line.size() <= fields.most_line || all.plain.data[i] == 0);
    Array<std::uint8_t> own(line.size());
    std::ranges::copy(line, own.data);
    const Columns alone(own, fields);
    REQUIRE(alone.lines == 1 && alone.plain.data[0] == all.plain.data[i]);
    REQUIRE(same(alone.text(0), all.text(i)) && same(alone.key(0), all.key(i)));
  }
}

void spliced(Input& in, const Columns& all, Bytes block) {
  Array<std::int64_t> ends(all.lines + 1);
  ends[0] = 0;
  for (std::size_t i = 0; i < all.lines; ++i) ends[i + 1] = ends[i] + static_cast<std::int64_t>(in.in(0, 5));
  Array<std::uint8_t> inserts(static_cast<std::size_t>(ends[all.lines]));
  for (std::size_t i = 0; i < inserts.size; ++i) inserts[i] = in.byte();
  Array<std::uint8_t> without(in.in(0, 3));
  for (std::size_t i = 0; i < without.size; ++i) without[i] = in.one_in(2) ? '_' : in.byte();
  Array<std::uint8_t> out(block.size() + inserts.size + all.lines);
  const SplicedLines made = spliced_lines(block, all.starts, inserts, ends, without, out.data);
  std::vector<std::uint8_t> expected;
  std::size_t i = 0;
  for (; i < all.lines; ++i) {
    const Bytes line = block.subspan(static_cast<std::size_t>(all.starts.data[i]),
                                     static_cast<std::size_t>(all.starts.data[i + 1] - all.starts.data[i]));
    const auto last = std::find_if_not(line.rbegin(), line.rend(), is_white);
    if (last == line.rend()) break;
    if (without.size != 0 &&
        std::search(line.begin(), line.end(), without.data, without.data + without.size) != line.end())
      break;
    expected.insert(expected.end(), line.begin(), last.base() - 1);
    expected.insert(expected.end(), inserts.data + ends[i], inserts.data + ends[i + 1]);
    expected.insert(expected.end(), last.base(), line.end());
    if (line.back() != '\n') expected.push_back('\n');
  }
  REQUIRE(made.lines == i && made.bytes == expected.size());
  REQUIRE(same(expected, Bytes(out.data, made.bytes)));
}

void tags(Input& in, Bytes page) {
  const std::size_t most = in.in(1, 40);
  const PageTags found = page_tags(page, most);
  const auto opened = static_cast<std::size_t>(std::ranges::count(page, '<'));
  REQUIRE(found.attributes <= most + 1);
  REQUIRE(found.unclosed <= opened && found.nested <= opened);
  const PageTags more = page_tags(page, most + 1);
  REQUIRE(more.unclosed == found.unclosed && more.nested == found.nested);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::uint8_t kText[] = {'t', 'e', 'x', 't'}, kKey[] = {'i', 'd'};
  Input in(data, size);
  const JsonFields fields{kText, in.one_in(8) ? Bytes(kText) : Bytes(kKey), in.in(1, 400), in.in(1, 40)};
  Array<std::uint8_t> block(in.in(0, 600));
  write(in, block);
  const Columns all(block, fields);
  lines(all, block, fields);
  spliced(in, all, block);
  tags(in, block);
  return 0;
}
