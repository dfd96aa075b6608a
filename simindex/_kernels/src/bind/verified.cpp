#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "bind/text_inputs.hpp"
#include "storage/verified.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

std::uintptr_t address_of(const Verified& section) {
  return reinterpret_cast<std::uintptr_t>(section.data().data());
}

// The bytes of the section at an address, once they are found to lie within it.
std::span<const std::uint8_t> bytes_at(const Verified& section, std::uintptr_t address,
                                       std::size_t size) {
  const std::uintptr_t from = address_of(section);
  const std::size_t all = section.data().size();
  require(from <= address && address - from <= all && size <= all - (address - from),
          "address: within the section");
  return section.data().subspan(address - from, size);
}

void touch(Verified& section, std::uintptr_t address, std::size_t size, std::size_t threads) {
  const std::span<const std::uint8_t> bytes = bytes_at(section, address, size);
  require(threads >= 1, "threads: 1 or more");
  if (section.all()) return;
  Signals signals;
  {
    ReleasedGil released;
    section.touch(bytes, threads, [&] { return signals(); });
  }
  signals.raise();
}

void touch_spans(Verified& section, std::uintptr_t address, const In<std::int64_t, 1>& starts,
                 const In<std::int64_t, 1>& ends) {
  const std::span<const std::uint8_t> bytes =
      bytes_at(section, address, address_of(section) + section.data().size() - address);
  require(starts.shape(0) == ends.shape(0), "starts and ends differ in length");
  const ReleasedGil released;
  const auto each = [&](auto look) {
    for (std::size_t i = 0; i < starts.shape(0); ++i) {
      const std::int64_t start = starts.data()[i], end = ends.data()[i];
      require(0 <= start && start <= end && static_cast<std::uint64_t>(end) <= bytes.size(),
              "starts and ends: within the section");
      look(bytes.data() + start, static_cast<std::size_t>(end - start));
    }
  };
  // Rows are often in order: 200,000 of one file took 280 ms where each asked the system again.
  std::size_t asked = ~std::size_t{0};
  each([&](const std::uint8_t* first, std::size_t size) {
    if (size == 0) return;
    const auto at = static_cast<std::size_t>(first - section.data().data());
    const std::size_t last = (at + size - 1) / Verified::kChunkBytes;
    if (at / Verified::kChunkBytes != asked || last != asked) section.ask(first, size);
    asked = last;
  });
  each([&](const std::uint8_t* first, std::size_t size) { section.touch(first, size); });
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const DamagedChunk& damage) {
    const nb::object path = nb::steal(PyUnicode_DecodeFSDefaultAndSize(
        damage.path.data(), static_cast<Py_ssize_t>(damage.path.size())));
    const std::string what =
        damage.readable
            ? " is damaged within " + std::to_string(damage.bytes) + " bytes at "
            : " cannot be read where it was mapped: it was cut short, or the disk fails, at ";
    const nb::object remedy = damage.remedy.empty() ? nb::none() : nb::cast(damage.remedy);
    const nb::object error = nb::module_::import_("simindex.errors").attr("CorruptFile")(
        path + nb::cast(what + std::to_string(damage.offset)), "remedy"_a = remedy,
        "path"_a = path, "offset"_a = damage.offset);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  }
}

}  // namespace

void bind_verified(nb::module_& m) {
  nb::register_exception_translator(translate);
  nb::class_<Verified>(m, "Verified")
      .def("__init__",
           [](Verified* self, const In<std::uint8_t, 1>& data, const In<std::uint32_t, 1>& sums,
              std::uint64_t seed, const nb::bytes& path, std::uint64_t offset,
              const char* remedy) {
             const std::size_t size = data.shape(0);
             require(sums.shape(0) == size / Verified::kChunkBytes +
                                          (size % Verified::kChunkBytes != 0),
                     "sums: one for each chunk");
             new (self) Verified(as_span(data), as_span(sums), seed,
                                 std::string(path.c_str(), path.size()), offset, remedy);
           },
           "data"_a.noconvert(), "sums"_a.noconvert(), "seed"_a, "path"_a = nb::bytes("", 0), "offset"_a = 0,
           "remedy"_a = "")
      .def_prop_ro("address", &address_of)
      .def_prop_ro("size", [](const Verified& section) { return section.data().size(); })
      .def_prop_ro("left", &Verified::left)
      .def("verify", &touch, "address"_a, "size"_a, "threads"_a = 1)
      .def("verify_spans", &touch_spans, "address"_a, "starts"_a.noconvert(), "ends"_a.noconvert());
}

}  // namespace simindex
