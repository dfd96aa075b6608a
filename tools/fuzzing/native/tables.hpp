// Tables with directories that may be right, damaged in some places, or arbitrary.
#pragma once

#include <algorithm>

#include "input.hpp"
#include "methods/matches.hpp"
#include "methods/probe/probe.hpp"
#include "storage/crc32c.hpp"
#include "storage/rows.hpp"
#include "storage/verified.hpp"

namespace simindex::fuzzing {

struct OwnTable {
  OwnTable(Input& in, std::size_t words, int least_bits = 0)
      : rows(0), directory(0) {
    const std::size_t n = in.in(0, 70);
    const int directory_bits = static_cast<int>(in.in(static_cast<std::size_t>(least_bits), 7));
    const int header_bits =
        static_cast<int>(in.in(static_cast<std::size_t>(least_bits), static_cast<std::size_t>(directory_bits)));
    Array<std::uint64_t> values = in.words(n * words);
    const std::uint8_t kind = in.byte();
    sorted = words == 1 && kind % 2 == 0;
    if (sorted) std::sort(values.data, values.data + n);
    Array<std::uint32_t> offsets((std::size_t{1} << directory_bits) + 1);
    if (kind < 128) {
      Array<std::uint64_t> first(n);
      for (std::size_t i = 0; i < n; ++i) first[i] = values[i * words];
      std::sort(first.data, first.data + n);
      header_directory(first, directory_bits, offsets);
      for (std::size_t i = in.in(0, 3); i > 0; --i) offsets[in.in(0, offsets.size - 1)] = in.offset(n);
    } else {
      for (std::size_t i = 0; i < offsets.size; ++i) offsets[i] = in.offset(n);
    }
    rows = std::move(values);
    directory = std::move(offsets);
    table = {rows.data, n, words, directory.data, directory_bits, header_bits};
    if (n != 0 && in.one_in(16)) verify(in);
  }

  Array<std::uint64_t> rows;
  Array<std::uint32_t> directory;
  // Rows that are compared with a checksum when they are touched, which may be another's.
  void verify(Input& in) {
    const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(rows.data),
                                              rows.size * sizeof(std::uint64_t));
    std::uint32_t sums[1];
    crc32c_chunks(bytes, Verified::kChunkBytes, 7, 0, sums, widest_level());
    if (in.one_in(4)) ++sums[0];
    verified = std::make_unique<Verified>(bytes, sums, 7, "", 0, "");
    table.verified = verified.get();
  }

  std::unique_ptr<Verified> verified;
  Table table;
  bool sorted = false;
};

// Whether each match names rows that are there, at their distance, which is within h.
inline void check(const Matches& found, const std::uint64_t* rows, std::size_t n, std::size_t words,
                  const Search& search) {
  for (std::size_t i = 0; i < found.size; ++i) {
    const auto query = static_cast<std::size_t>(found.query[i]);
    REQUIRE(query < search.m && found.row[i] < n);
    const std::uint64_t apart =
        distance(rows + found.row[i] * words, search.queries + query * words, words);
    REQUIRE(apart == found.distance[i] && apart <= search.h);
    REQUIRE(!search.first || i == 0 || found.query[i - 1] != found.query[i]);
  }
}

}  // namespace simindex::fuzzing
