#include "bindings.hpp"

namespace simindex {

void bind_text(nanobind::module_&) {}

}  // namespace simindex
