// Arrays of a search, checked before a kernel reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "bind/arrays.hpp"
#include "methods/probe/probe.hpp"
#include "storage/verified.hpp"

namespace simindex {

inline void check_rows(const In<std::uint64_t, 2>& rows) {
  require(rows.shape(0) <= kMaxRows, "rows: a table holds at most 2**32 - 16 rows");
  require(1 <= rows.shape(1) && rows.shape(1) <= kMaxWords, "rows: from 1 to 1023 words wide");
  require(aligned(rows.data(), 8), "rows: needs words aligned to 8 bytes; copy the array");
}

inline void require_within(const Verified* verified, const void* data, std::size_t bytes) {
  require(verified == nullptr || verified->holds(data, bytes),
          "verified: what the array is part of");
}

Table table_of(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 1>& directory,
               int directory_bits, int header_bits, Verified* verified = nullptr);

inline Search search_of(const In<std::uint64_t, 2>& queries, std::size_t words, int h, bool first,
                        Room* room = nullptr) {
  require(queries.shape(1) == words, "queries: as many words as the rows");
  require(aligned(queries.data(), 8), "queries: needs words aligned to 8 bytes; copy the array");
  require(h >= 0, "h: 0 or more");
  return {queries.data(), queries.shape(0), static_cast<std::uint64_t>(h), first, room};
}

// What a query takes of the rows within h, where the costs of its flips are given.
inline Likely likely_of(const std::optional<In<std::uint8_t, 2>>& costs, std::uint32_t most,
                        const Search& search, std::size_t words) {
  if (!costs) return {};
  require(costs->shape(0) == search.m && costs->shape(1) == 64 && words == 1,
          "costs: a row of 64 per query, of rows of 64 bits");
  require(!search.first, "costs: not for first matches");
  return {costs->data(), most};
}

// Arrays that were checked once and are searched many times: each array costs a call 0.3 us, which is
// most of a single query. Values like the arrays they hold; they never change.
class CheckedTable {
 public:
  CheckedTable(In<std::uint64_t, 2> rows, In<std::uint32_t, 1> directory, int directory_bits,
               In<std::uint64_t, 1> ids, Verified* verified_rows, Verified* verified_ids)
      : rows_(std::move(rows)), directory_(std::move(directory)), ids_(std::move(ids)),
        directory_bits_(directory_bits), verified_rows_(verified_rows),
        verified_ids_(verified_ids) {
    table_of(rows_, directory_, directory_bits_, directory_bits_, verified_rows);
    require(ids_.shape(0) == rows_.shape(0), "ids: one for each row");
    require(aligned(ids_.data(), 8), "ids: needs words aligned to 8 bytes; copy the array");
    require_within(verified_ids, ids_.data(), ids_.nbytes());
  }

  Table table(int header_bits) const {
    require(0 <= header_bits && header_bits <= directory_bits_,
            "header_bits: from 0 to directory_bits");
    return {rows_.data(), rows_.shape(0), rows_.shape(1), directory_.data(), directory_bits_,
            header_bits, verified_rows_};
  }
  const std::uint64_t* ids() const { return ids_.data(); }
  Verified* verified_ids() const { return verified_ids_; }

 private:
  In<std::uint64_t, 2> rows_;
  In<std::uint32_t, 1> directory_;
  In<std::uint64_t, 1> ids_;
  int directory_bits_;
  Verified* verified_rows_;
  Verified* verified_ids_;
};

}  // namespace simindex
