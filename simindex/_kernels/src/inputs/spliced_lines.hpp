// JSON lines with something written into their objects, behind the last field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace simindex {

struct SplicedLines {
  std::size_t lines;  // that were written
  std::size_t bytes;
};

// Writes line i, block[starts[i], starts[i + 1]), with inserts[insert_ends[i], insert_ends[i + 1])
// in place of its last byte that is no white space, and with a line feed at its end.
//
// Stops before the first line that has the bytes `without`, or is nothing but white space. `out` has
// room for the lines, the inserts, and a line feed for each line.
SplicedLines spliced_lines(std::span<const std::uint8_t> block, std::span<const std::int64_t> starts,
                           std::span<const std::uint8_t> inserts,
                           std::span<const std::int64_t> insert_ends,
                           std::span<const std::uint8_t> without, std::uint8_t* out);

}  // namespace simindex
