#include "bind/bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bind/columns.hpp"
#include "bind/gil.hpp"
#include "cpu/levels.hpp"

namespace {

// nanobind keeps in hash tables which instances there are and what they keep alive, and ends the
// process, or loses one, where a table cannot grow. So they are grown before an index is opened, where
// there is memory, and do not shrink. An import grows them for a few segments: to make thousands of
// instances takes milliseconds, and a command of the shell has no other use for them.
constexpr std::size_t kPerSegment = 16, kFewSegments = 64;

struct Instance {};

PyObject* instance_type = nullptr;
std::size_t expected_segments = 0;

void expect_segments(std::size_t count) {
  if (count <= expected_segments) return;
  const nanobind::handle type(instance_type);
  std::vector<nanobind::object> instances(kPerSegment * count);
  for (nanobind::object& instance : instances) instance = type(type);
  expected_segments = count;
}

void prepare_tables(nanobind::module_& m) {
  instance_type =
      nanobind::class_<Instance>(m, "Instance")
          .def("__init__", [](Instance* self, nanobind::handle) { new (self) Instance; },
               nanobind::keep_alive<1, 2>())
          .release()
          .ptr();  // as long as the process
  nanobind::delattr(m, "Instance");
  expect_segments(kFewSegments);
}

}  // namespace

NB_MODULE(_native, m) {
  // Recipes that a program still holds when it ends are not a leak worth a page of warnings.
  nanobind::set_leak_warnings(false);
  simindex::import_numpy();
  prepare_tables(m);
  m.def("expect_segments", &expect_segments, nanobind::arg("count"));
  m.def("levels", [] {
    std::vector<std::string> names{"portable"};
    if (simindex::widest_level() >= simindex::kAvx2) names.emplace_back("avx2");
    if (simindex::widest_level() >= simindex::kAvx512) names.emplace_back("avx512");
    if (simindex::widest_level() >= simindex::kAvx512Vpopcntdq) {
      names.emplace_back("avx512-vpopcntdq");
    }
    return names;
  });
  m.def("default_level", [] { return simindex::resolve_level(-1); });
  m.def("end_threads", &simindex::end_threads);
  simindex::bind_bytes(m);
  simindex::bind_verified(m);
  simindex::bind_rows(m);
  simindex::bind_vosh(m);
  simindex::bind_probe(m);
  simindex::bind_sweep(m);
  simindex::bind_bphs(m);
  simindex::bind_scan(m);
  simindex::bind_arriving(m);
  simindex::bind_text(m);
  simindex::bind_lookup(m);
  simindex::bind_pairs(m);
  simindex::bind_slices(m);
  simindex::bind_clusters(m);
  simindex::bind_issl(m);
  simindex::bind_arrow(m);
  simindex::bind_inputs(m);
}
