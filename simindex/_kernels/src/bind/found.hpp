// What a search found, as arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <tuple>
#include <utility>

#include "bind/checked.hpp"
#include "bind/columns.hpp"
#include "bind/gil.hpp"
#include "methods/matches.hpp"
#include "methods/probe/probe.hpp"

namespace simindex {

struct MatchColumns {
  nanobind::object query;
  nanobind::object row;
  nanobind::object distance;
};

inline MatchColumns columns(Matches& matches) {
  const std::size_t size = matches.size;
  matches.trim();
  return {column(matches.query, size), column(matches.row, size), column(matches.distance, size)};
}

// query, row, distance, id, probes, compared
using IdResult =
    std::tuple<nanobind::object, nanobind::object, nanobind::object, nanobind::object,
               std::uint64_t, std::uint64_t>;

// The ids of found rows, each fetched while those before it arrive.
inline std::uint64_t* ids_of(const Matches& matches, const std::uint64_t* ids, Verified* verified) {
  constexpr std::size_t kAhead = 16;
  if (verified != nullptr && !verified->all())
    for (std::size_t i = 0; i < matches.size; ++i) verified->touch(ids + matches.row[i], 1);
  auto* found = static_cast<std::uint64_t*>(std::malloc((matches.size + 1) * sizeof(std::uint64_t)));
  if (found == nullptr) throw std::bad_alloc();
  for (std::size_t i = 0; i < matches.size; ++i) {
    if (i + kAhead < matches.size) __builtin_prefetch(ids + matches.row[i + kAhead]);
    found[i] = ids[matches.row[i]];
  }
  return found;
}

template <class Look>
IdResult with_ids(const CheckedTable& table, Look look) {
  Found found;
  std::uint64_t* ids = nullptr;
  {
    ReleasedGil released;
    found = look();
    ids = ids_of(found.matches, table.ids(), table.verified_ids());
  }
  const std::size_t size = found.matches.size;
  nanobind::object id = column(ids, size);
  MatchColumns all = columns(found.matches);
  return {std::move(all.query), std::move(all.row), std::move(all.distance), std::move(id),
          found.probes, found.compared};
}

}  // namespace simindex
