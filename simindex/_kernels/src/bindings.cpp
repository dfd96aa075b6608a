#include "bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "columns.hpp"
#include "cpu.hpp"
#include "gil.hpp"

NB_MODULE(_native, m) {
  // Recipes that a program still holds when it ends are no leak worth a page of warnings.
  nanobind::set_leak_warnings(false);
  simindex::import_numpy();
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
  simindex::bind_text(m);
  simindex::bind_search(m);
  simindex::bind_top(m);
  simindex::bind_lookup(m);
  simindex::bind_pairs(m);
  simindex::bind_slices(m);
  simindex::bind_clusters(m);
  simindex::bind_issl(m);
}
