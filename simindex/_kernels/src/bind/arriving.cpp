#include "bind/arriving.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "bind/baton.hpp"
#include "bind/bindings.hpp"

namespace nb = nanobind;

namespace simindex {

void bind_arriving(nb::module_& m) {
  nb::class_<Passages>(m, "Passages")
      .def(nb::init<std::size_t, int>(), nb::arg("words"), nb::arg("h"))
      .def("scan", &Passages::scan, nb::arg("rows").noconvert(),
           nb::arg("verified").none() = nb::none(), nb::keep_alive<1, 3>())
      .def("probe", &Passages::probe, nb::arg("table"), nb::arg("header_bits"),
           nb::arg("flips").noconvert())
      .def("permuted", &Passages::permuted, nb::arg("table"), nb::arg("header_bits"),
           nb::arg("tables"));
  nb::class_<Places>(m, "Places")
      .def(nb::init<Places::Column<std::uint64_t>, Places::Column<std::uint8_t>,
                    std::optional<Places::Column<float>>>(),
           nb::arg("rows").noconvert(), nb::arg("sketches").noconvert(),
           nb::arg("weights").noconvert().none() = nb::none())
      .def("take", &Places::take, nb::arg("apart"), nb::arg("first"), nb::arg("count"),
           nb::arg("passages"));
  nb::class_<Baton>(m, "Baton").def(nb::init<>());
}

}  // namespace simindex
