#include "bind/columns.hpp"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <cstdlib>
#include <new>
#include <utility>

namespace nb = nanobind;

namespace simindex {
namespace {

nb::object owned(void* values, std::size_t size, int type) {
  if (values == nullptr) values = std::malloc(8);
  if (values == nullptr) throw std::bad_alloc();
  nb::capsule owner(values, [](void* memory) noexcept { std::free(memory); });
  npy_intp shape[1] = {static_cast<npy_intp>(size)};
  PyObject* array = PyArray_SimpleNewFromData(1, shape, type, values);
  if (array == nullptr) throw nb::python_error();
  nb::object result = nb::steal(array);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner.release().ptr()) < 0)
    throw nb::python_error();
  return result;
}

}  // namespace

void import_numpy() {
  if (_import_array() < 0) throw nb::python_error();
}

nb::object column(std::int64_t*& values, std::size_t size) {
  return owned(std::exchange(values, nullptr), size, NPY_INT64);
}
nb::object column(std::uint64_t*& values, std::size_t size) {
  return owned(std::exchange(values, nullptr), size, NPY_UINT64);
}
nb::object column(std::uint32_t*& values, std::size_t size) {
  return owned(std::exchange(values, nullptr), size, NPY_UINT32);
}
nb::object column(std::uint16_t*& values, std::size_t size) {
  return owned(std::exchange(values, nullptr), size, NPY_UINT16);
}

}  // namespace simindex
