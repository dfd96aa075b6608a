#include <cstdint>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "inputs/json_lines.hpp"
#include "inputs/page_tags.hpp"
#include "inputs/spliced_lines.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

nb::tuple bind_page_tags(const In<std::uint8_t, 1>& page, std::size_t most) {
  PageTags found{};
  {
    ReleasedGil release;
    found = page_tags(as_span(page), most);
  }
  return nb::make_tuple(found.attributes, found.unclosed, found.nested);
}

nb::tuple bind_json_lines(const In<std::uint8_t, 1>& block, const In<std::uint8_t, 1>& text_field,
                          const In<std::uint8_t, 1>& key_field, std::size_t most_line,
                          std::size_t most_key) {
  const std::span<const std::uint8_t> bytes = as_span(block);
  std::size_t lines = 0;
  {
    ReleasedGil release;
    lines = count_lines(bytes);
  }
  Fresh<std::int64_t> starts(lines + 1), text_ends(lines + 1), key_ends(lines + 1);
  Fresh<std::uint8_t> plain(lines), texts(bytes.size()), keys(bytes.size());
  {
    ReleasedGil release;
    json_lines(bytes, {as_span(text_field), as_span(key_field), most_line, most_key}, starts.span(),
               plain.span(), texts.data(), text_ends.span(), keys.data(), key_ends.span());
  }
  return nb::make_tuple(starts.release(), plain.release(), texts.release(), text_ends.release(),
                        keys.release(), key_ends.release());
}

nb::tuple bind_spliced_lines(const In<std::uint8_t, 1>& block, const In<std::int64_t, 1>& starts,
                             const In<std::uint8_t, 1>& inserts,
                             const In<std::int64_t, 1>& insert_ends,
                             const In<std::uint8_t, 1>& without) {
  const std::span<const std::int64_t> lines = as_span(starts), ends = as_span(insert_ends);
  require_parts(lines, block.size(), "starts ascend and are within the block");
  require_parts(ends, inserts.size(), "insert_ends ascend and are within inserts");
  require(lines.size() == ends.size(), "starts and insert_ends differ in length");
  Fresh<std::uint8_t> out(static_cast<std::size_t>(lines.back() - lines.front()) +
                          static_cast<std::size_t>(ends.back() - ends.front()) + lines.size());
  SplicedLines made{};
  {
    ReleasedGil release;
    made = spliced_lines(as_span(block), lines, as_span(inserts), ends, as_span(without), out.data());
  }
  return nb::make_tuple(made.lines, made.bytes, out.release());
}

}  // namespace

void bind_inputs(nb::module_& m) {
  m.def("page_tags", &bind_page_tags, "page"_a.noconvert(), "most"_a);
  m.def("json_lines", &bind_json_lines, "block"_a.noconvert(), "text_field"_a.noconvert(),
        "key_field"_a.noconvert(), "most_line"_a, "most_key"_a);
  m.def("spliced_lines", &bind_spliced_lines, "block"_a.noconvert(), "starts"_a.noconvert(),
        "inserts"_a.noconvert(), "insert_ends"_a.noconvert(), "without"_a.noconvert());
}

}  // namespace simindex
