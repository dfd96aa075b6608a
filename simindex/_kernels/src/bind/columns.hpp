// Columns that a search found, as numpy arrays that own them.
//
// numpy's own interface makes an array in 0.1 us, nanobind's in 0.6 us by way of Python; a query
// returns four, and one query by itself takes a few microseconds in all.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace simindex {

// Fetches numpy's interface; call once, when the module is loaded.
void import_numpy();

// An array (size,) that owns `values`, memory from malloc, which is taken even if this throws.
nanobind::object column(std::int64_t*& values, std::size_t size);
nanobind::object column(std::uint64_t*& values, std::size_t size);
nanobind::object column(std::uint32_t*& values, std::size_t size);
nanobind::object column(std::uint16_t*& values, std::size_t size);

}  // namespace simindex
