#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "inputs/page_tags.hpp"

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

}  // namespace

void bind_inputs(nb::module_& m) {
  m.def("page_tags", &bind_page_tags, "page"_a.noconvert(), "most"_a);
}

}  // namespace simindex
