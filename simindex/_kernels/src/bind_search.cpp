#include "bindings.hpp"

namespace simindex {

void bind_search(nanobind::module_&) {}

}  // namespace simindex
