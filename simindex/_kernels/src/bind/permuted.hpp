// Tables of a block design, checked before a kernel reads them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/checked.hpp"
#include "bits/permutation.hpp"
#include "methods/probe/bphs.hpp"

namespace simindex {

inline std::span<const Rotation> rotations_of(const In<std::uint64_t, 2>& rotations) {
  require(rotations.shape(1) == 4, "rotations: (k, 4)");
  require(aligned(rotations.data(), 8), "rotations: aligned to 8 bytes; copy the array");
  return {reinterpret_cast<const Rotation*>(rotations.data()), rotations.shape(0)};
}

inline void check_rotations(std::span<const Rotation> rotations, std::size_t words) {
  for (const Rotation& rotation : rotations)
    require(rotation.source < words && rotation.target < words && rotation.left < 64,
            "rotations: of words that are there, by less than 64");
}

// One table of a block design, checked once.
class CheckedPermuted {
 public:
  CheckedPermuted(In<std::uint64_t, 2> rows, In<std::uint32_t, 1> directory, int directory_bits,
                  int header_bits, In<std::uint64_t, 2> rotations, In<std::uint64_t, 2> inverse,
                  In<std::uint64_t, 1> flips, In<std::uint64_t, 1> header, int most_flips,
                  Verified* verified)
      : rows_(std::move(rows)), directory_(std::move(directory)),
        rotations_(std::move(rotations)), inverse_(std::move(inverse)), flips_(std::move(flips)),
        header_(std::move(header)),
        table_{table_of(rows_, directory_, directory_bits, header_bits, verified),
               rotations_of(rotations_), rotations_of(inverse_),
               {flips_.data(), flips_.shape(0)}, {header_.data(), header_.shape(0)},
               static_cast<std::uint64_t>(most_flips)} {
    require(most_flips >= 0, "most_flips: 0 or more");
    require(header_.shape(0) == rows_.shape(1), "header: as many words as the rows");
    require(rotations_.shape(0) == 0 || inverse_.shape(0) != 0, "inverse: of the rotations");
    check_rotations(table_.rotations, rows_.shape(1));
    check_rotations(table_.inverse, rows_.shape(1));
  }

  const PermutedTable& table() const { return table_; }

 private:
  In<std::uint64_t, 2> rows_;
  In<std::uint32_t, 1> directory_;
  In<std::uint64_t, 2> rotations_;
  In<std::uint64_t, 2> inverse_;
  In<std::uint64_t, 1> flips_;
  In<std::uint64_t, 1> header_;
  PermutedTable table_;
};

// Those of a list, which belong to a table 0.
inline std::vector<PermutedTable> permuted_of(const nanobind::list& list, const Table& own) {
  // Taken one by one: nanobind's own conversion to a vector ends the process where memory runs out.
  std::vector<PermutedTable> tables;
  tables.reserve(list.size());
  for (const nanobind::handle item : list) {
    const CheckedPermuted* one = nullptr;
    if (!nanobind::try_cast(item, one)) throw nanobind::type_error("tables: a list of CheckedPermuted");
    require(one != nullptr && one->table().table.words == own.words,
            "tables: as many words as the rows");
    require(!one->table().rotations.empty() || one->table().table.n == own.n,
            "tables: without rotations, as many rows as table 0");
    tables.push_back(one->table());
  }
  return tables;
}

}  // namespace simindex
