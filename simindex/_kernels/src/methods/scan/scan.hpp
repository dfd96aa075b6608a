// Compares every query with every row, exactly; any width, any h.
//
// Rows are taken in slabs of about 32 KiB, which stay in the first-level cache while all queries
// pass over them; matches come out by (slab, query) and are put in order once at the end. Levels 2 and 3
// turn rows of several words into lines of one word of eight rows (scan.cpp, Slab).
#pragma once

#include <cstddef>
#include <cstdint>

#include "methods/probe/probe.hpp"

namespace simindex {

// Matches by (query, row); `rows` (n, words), n < 2^32. In `first` mode a query stops at its first
// row. Only matches and compared of the result are set.
Found scan(const std::uint64_t* rows, std::size_t n, std::size_t words, const Search& search,
           int level);

}  // namespace simindex
