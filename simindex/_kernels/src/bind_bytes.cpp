#include "bindings.hpp"

namespace simindex {

void bind_bytes(nanobind::module_&) {}

}  // namespace simindex
