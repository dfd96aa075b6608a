#include "bind/checked.hpp"

namespace simindex {

Table table_of(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 1>& directory,
               int directory_bits, int header_bits, Verified* verified) {
  check_rows(rows);
  require(0 <= directory_bits && directory_bits <= kMaxDirectoryBits,
          "directory_bits: from 0 to 31");
  require(directory.shape(0) == (std::size_t{1} << directory_bits) + 1,
          "directory: needs 2**directory_bits + 1 entries");
  require(aligned(directory.data(), 4), "directory: needs entries aligned to 4 bytes");
  require(0 <= header_bits && header_bits <= directory_bits,
          "header_bits: from 0 to directory_bits");
  require_within(verified, rows.data(), rows.nbytes());
  return {rows.data(), rows.shape(0), rows.shape(1), directory.data(), directory_bits, header_bits,
          verified};
}

}  // namespace simindex
