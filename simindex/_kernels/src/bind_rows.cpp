#include "bindings.hpp"

namespace simindex {

void bind_rows(nanobind::module_&) {}

}  // namespace simindex
