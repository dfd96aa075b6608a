#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bindings.hpp"
#include "bind/columns.hpp"
#include "bind/gil.hpp"
#include "bits/vosh.hpp"
#include "cpu/levels.hpp"
#include "methods/probe/bphs.hpp"
#include "methods/probe/probe.hpp"
#include "methods/probe/sweep.hpp"
#include "methods/scan/scan.hpp"
#include "storage/verified.hpp"

namespace nb = nanobind;

namespace simindex {
namespace {

template <class T, int kDimensions>
using In = nb::ndarray<const T, nb::ndim<kDimensions>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

void require(bool held, const char* message) {
  if (!held) throw nb::value_error(message);
}

struct Columns {
  nb::object query;
  nb::object row;
  nb::object distance;
};

Columns columns(Matches& matches) {
  const std::size_t size = matches.size;
  if (size != 0 && matches.capacity - size > size / 8) matches.reserve(size);
  return {column(matches.query, size), column(matches.row, size), column(matches.distance, size)};
}

bool aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

void check_rows(const In<std::uint64_t, 2>& rows) {
  require(rows.shape(0) <= kMaxRows, "rows: a table holds at most 2**32 - 16 rows");
  require(1 <= rows.shape(1) && rows.shape(1) <= kMaxWords, "rows: from 1 to 1023 words wide");
  require(aligned(rows.data(), 8), "rows: needs words aligned to 8 bytes; copy the array");
}

void require_within(const Verified* verified, const void* data, std::size_t bytes) {
  require(verified == nullptr || verified->holds(data, bytes),
          "verified: what the array is part of");
}

Table table_of(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 1>& directory,
               int directory_bits, int header_bits, Verified* verified = nullptr) {
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

Search search_of(const In<std::uint64_t, 2>& queries, std::size_t words, int h, bool first) {
  require(queries.shape(1) == words, "queries: as many words as the rows");
  require(aligned(queries.data(), 8), "queries: needs words aligned to 8 bytes; copy the array");
  require(h >= 0, "h: 0 or more");
  return {queries.data(), queries.shape(0), static_cast<std::uint64_t>(h), first};
}

Vosh plan_of(std::size_t bits, const In<float, 1>& costs, double cost_step,
             int header_bits, int h, std::int64_t flips, const In<std::uint8_t, 2>& candidates,
             const In<std::uint8_t, 2>& sort_network, const In<std::uint16_t, 2>& select_network) {
  Vosh plan;
  plan.bits = bits;
  plan.costs = {costs.data(), costs.shape(0)};
  plan.cost_step = static_cast<float>(cost_step);
  plan.header_bits = header_bits;
  plan.h = h;
  plan.flips = static_cast<std::size_t>(flips);
  require(plan.bits >= 64 && plan.bits % 64 == 0, "weights: as many columns as fingerprint bits");
  require(costs.shape(0) >= 1 && costs.shape(0) <= std::size_t{1} << 24,
          "costs: from 1 to 2**24 entries");
  require(plan.cost_step > 0 && std::isfinite(plan.cost_step), "cost_step: above 0");
  require(0 <= header_bits && header_bits <= 64, "header_bits: from 0 to 64");
  require(h >= 0 && flips >= 0, "h and flips: 0 or more");
  if (flips == 0 || candidates.shape(0) == 0) return plan;

  plan.candidates = {candidates.data(), candidates.size()};
  plan.sort_network = {sort_network.data(), sort_network.size()};
  plan.select_network = {select_network.data(), select_network.size()};
  require(header_bits <= kMaxNetworkedBits, "header_bits: networks sort at most 32 bits");
  require(candidates.shape(0) <= kMaxCandidates, "candidates: at most 2048");
  require(h >= 1 && candidates.shape(1) == static_cast<std::size_t>(h), "candidates: (C, h)");
  require(plan.flips <= candidates.shape(0), "flips: at most the number of candidates");
  require(sort_network.shape(1) == 2 && select_network.shape(1) == 2, "networks: pairs of wires");
  const std::size_t ranks = std::min(plan.flips, static_cast<std::size_t>(header_bits));
  bool inside = true;
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const std::uint8_t rank = plan.candidates[i];
    inside &= rank < ranks || (rank == 255 && i % static_cast<std::size_t>(h) != 0);
  }
  for (const std::uint8_t wire : plan.sort_network) inside &= wire < header_bits;
  for (const std::uint16_t wire : plan.select_network) inside &= wire < candidates.shape(0);
  require(inside, "a candidate or a network names a rank or wire that is not there");
  return plan;
}

using ProbeResult = std::tuple<nb::object, nb::object, nb::object, std::uint64_t, std::uint64_t>;
using ScanResult = std::tuple<nb::object, nb::object, nb::object, std::uint64_t>;

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

class CheckedVosh {
 public:
  CheckedVosh(In<float, 1> costs, double cost_step, int bits, int header_bits, int h,
              std::int64_t flips, In<std::uint8_t, 2> candidates,
              In<std::uint8_t, 2> sort_network, In<std::uint16_t, 2> select_network)
      : costs_(std::move(costs)), candidates_(std::move(candidates)),
        sort_network_(std::move(sort_network)), select_network_(std::move(select_network)),
        plan_(plan_of(bits, costs_, cost_step, header_bits, h, flips, candidates_, sort_network_,
                      select_network_)) {}

  const Vosh& plan() const { return plan_; }

 private:
  In<float, 1> costs_;
  In<std::uint8_t, 2> candidates_;
  In<std::uint8_t, 2> sort_network_;
  In<std::uint16_t, 2> select_network_;
  Vosh plan_;
};

// query, row, distance, id, probes, compared
using IdResult =
    std::tuple<nb::object, nb::object, nb::object, nb::object, std::uint64_t, std::uint64_t>;

// The ids of found rows, each fetched while those before it arrive.
std::uint64_t* ids_of(const Matches& matches, const std::uint64_t* ids, Verified* verified) {
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
  nb::object id = column(ids, size);
  Columns all = columns(found.matches);
  return {std::move(all.query), std::move(all.row), std::move(all.distance), std::move(id),
          found.probes, found.compared};
}

IdResult probe_checked(const CheckedTable& checked, int header_bits,
                       const In<std::uint64_t, 2>& queries, const In<std::uint64_t, 1>& flips,
                       int h, bool first, int level) {
  const Table table = checked.table(header_bits);
  const Search search = search_of(queries, table.words, h, first);
  return with_ids(checked, [&] {
    return probe(table, search, flips.data(), flips.shape(0), 0, resolve_level(level));
  });
}

IdResult psm_checked(const CheckedTable& checked, const CheckedVosh& vosh,
                     const In<std::uint64_t, 2>& queries, const In<float, 2>& weights, bool first,
                     int level) {
  const Vosh& plan = vosh.plan();
  const Table table = checked.table(plan.header_bits);
  const Search search = search_of(queries, table.words, plan.h, first);
  require(weights.shape(0) == search.m && weights.shape(1) == plan.bits,
          "weights: a row per query, a column per bit");
  return with_ids(checked, [&] {
    return psm(table, search, plan, weights.data(), resolve_level(level));
  });
}

using Numbers = std::optional<In<std::uint32_t, 1>>;

// Probes of a batch by partition, with the batch they are of.
class CheckedProbes {
 public:
  CheckedProbes(const CheckedTable& checked, int header_bits, const In<std::uint64_t, 2>& queries,
                const Numbers& numbers, std::size_t each, bool keep)
      : queries_(queries), numbers_(numbers) {
    const Table table = checked.table(header_bits);
    require(1 <= header_bits && header_bits <= kMaxNetworkedBits, "header_bits: from 1 to 32");
    search_of(queries_, table.words, 0, false);
    require(queries_.shape(0) < std::size_t{1} << 32, "queries: fewer than 2**32");
    chosen_ = {queries_.data(), nullptr, queries_.shape(0)};
    if (numbers_) {
      chosen_.numbers = numbers_->data();
      chosen_.count = numbers_->shape(0);
      bool inside = true;
      for (std::size_t i = 0; i < chosen_.count; ++i) inside &= chosen_.numbers[i] < queries_.shape(0);
      require(inside, "numbers: of queries that are there");
    }
    require(each == 0 || chosen_.count < (std::size_t{1} << 32) / each, "fewer than 2**32 probes");
    ReleasedGil released;
    batch_ = std::make_unique<Partitioned>(table, chosen_.count * each, keep);
  }

  const Chosen& chosen() const { return chosen_; }
  const In<std::uint64_t, 2>& queries() const { return queries_; }
  Partitioned& batch() const { return *batch_; }
  std::size_t partitions() const { return batch_->partitions(); }
  std::size_t size() const { return batch_->size; }

 private:
  In<std::uint64_t, 2> queries_;
  Numbers numbers_;
  Chosen chosen_;
  std::unique_ptr<Partitioned> batch_;
};

std::unique_ptr<CheckedProbes> bound_partition_psm(
    const CheckedTable& checked, const CheckedVosh& vosh, const In<std::uint64_t, 2>& queries,
    const In<float, 2>& weights, const Numbers& numbers, bool own, bool keep, int level) {
  const Vosh& plan = vosh.plan();
  require(plan.networked(), "vosh: of flip sets that have networks");
  require(weights.shape(0) == queries.shape(0) && weights.shape(1) == plan.bits,
          "weights: a row per query, a column per bit");
  auto probes = std::make_unique<CheckedProbes>(checked, plan.header_bits, queries, numbers,
                                                (own ? 1 : 0) + plan.flips, keep);
  ReleasedGil released;
  partition_psm(probes->chosen(), plan, weights.data(), own, resolve_level(level),
                probes->batch());
  return probes;
}

std::unique_ptr<CheckedProbes> bound_partition_headers(const CheckedTable& checked,
                                                       int header_bits,
                                                       const In<std::uint64_t, 2>& queries,
                                                       const Numbers& numbers, bool keep) {
  auto probes = std::make_unique<CheckedProbes>(checked, header_bits, queries, numbers, 1, keep);
  ReleasedGil released;
  partition_headers(probes->chosen(), probes->batch());
  return probes;
}

IdResult bound_sweep(const CheckedTable& checked, const CheckedProbes& probes, int h,
                     std::size_t begin, std::size_t end,
                     const std::optional<In<std::uint8_t, 1>>& skip, int level) {
  const Partitioned& batch = probes.batch();
  const Table table = checked.table(batch.header_bits);
  require(table.words == batch.words && table.directory_bits == batch.directory_bits,
          "probes: of this table");
  require(begin <= end && end <= batch.partitions(), "partitions: begin <= end <= all");
  const Search search = search_of(probes.queries(), table.words, h, false);
  require(!skip || skip->shape(0) == search.m, "skip: one for each query");
  return with_ids(checked, [&] {
    return sweep_partitioned(table, search, batch, begin, end, skip ? skip->data() : nullptr,
                             resolve_level(level));
  });
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
    for (const auto part : {table_.rotations, table_.inverse})
      for (const Rotation& rotation : part)
        require(rotation.source < rows_.shape(1) && rotation.target < rows_.shape(1) &&
                    rotation.left < 64,
                "rotations: of words that are there, by less than 64");
  }

  const PermutedTable& table() const { return table_; }

  static std::span<const Rotation> rotations_of(const In<std::uint64_t, 2>& rotations) {
    require(rotations.shape(1) == 4, "rotations: (k, 4)");
    require(aligned(rotations.data(), 8), "rotations: aligned to 8 bytes; copy the array");
    return {reinterpret_cast<const Rotation*>(rotations.data()), rotations.shape(0)};
  }

 private:
  In<std::uint64_t, 2> rows_;
  In<std::uint32_t, 1> directory_;
  In<std::uint64_t, 2> rotations_;
  In<std::uint64_t, 2> inverse_;
  In<std::uint64_t, 1> flips_;
  In<std::uint64_t, 1> header_;
  PermutedTable table_;
};

// IdResult, and how many hits table 0 does not hold.
using BphsResult = std::tuple<nb::object, nb::object, nb::object, nb::object, std::uint64_t,
                              std::uint64_t, std::uint64_t>;

BphsResult bound_bphs(const CheckedTable& checked, int header_bits,
                      const std::vector<const CheckedPermuted*>& permuted,
                      const In<std::uint64_t, 2>& queries, int h, bool first,
                      std::uint64_t sweep_queries, int level) {
  const Table table = checked.table(header_bits);
  const Search search = search_of(queries, table.words, h, first);
  std::vector<PermutedTable> tables;
  for (const CheckedPermuted* one : permuted) {
    require(one != nullptr && one->table().table.words == table.words,
            "tables: as many words as the rows");
    require(!one->table().rotations.empty() || one->table().table.n == table.n,
            "tables: without rotations, as many rows as table 0");
    tables.push_back(one->table());
  }
  std::uint64_t missing = 0;
  IdResult all = with_ids(checked, [&] {
    FoundAgain again = bphs(table, tables, search, sweep_queries, resolve_level(level));
    missing = again.missing;
    return std::move(again.found);
  });
  return std::tuple_cat(std::move(all), std::make_tuple(missing));
}

Out<std::uint64_t> bound_permute(const In<std::uint64_t, 2>& rows,
                                 const In<std::uint64_t, 2>& rotations, int level) {
  check_rows(rows);
  const std::span<const Rotation> moves = CheckedPermuted::rotations_of(rotations);
  for (const Rotation& rotation : moves)
    require(rotation.source < rows.shape(1) && rotation.target < rows.shape(1) &&
                rotation.left < 64,
            "rotations: of words that are there, by less than 64");
  auto* permuted = static_cast<std::uint64_t*>(
      std::malloc((rows.size() + 1) * sizeof(std::uint64_t)));
  if (permuted == nullptr) throw std::bad_alloc();
  nb::capsule owner(permuted, [](void* memory) noexcept { std::free(memory); });
  {
    ReleasedGil released;
    permute(rows.data(), rows.shape(0), rows.shape(1), moves, permuted, resolve_level(level));
  }
  return Out<std::uint64_t>(permuted, {rows.shape(0), rows.shape(1)}, owner);
}

ProbeResult result_of(Found& found) {
  Columns all = columns(found.matches);
  return {std::move(all.query), std::move(all.row), std::move(all.distance), found.probes,
          found.compared};
}

ProbeResult bound_probe(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 1>& directory,
                        int directory_bits, int header_bits, const In<std::uint64_t, 2>& queries,
                        const nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu>& flips,
                        int h, bool first, int level) {
  const Table table = table_of(rows, directory, directory_bits, header_bits);
  const Search search = search_of(queries, table.words, h, first);
  require(flips.ndim() == 1 || (flips.ndim() == 2 && flips.shape(0) == search.m),
          "flips: (K,), or (m, K) with a row per query");
  const std::size_t k = flips.shape(flips.ndim() - 1);
  Found found;
  {
    ReleasedGil released;
    found = probe(table, search, flips.data(), k, flips.ndim() == 1 ? 0 : k, resolve_level(level));
  }
  return result_of(found);
}

Out<std::uint64_t> bound_vosh(const In<float, 2>& weights, const In<float, 1>& costs,
                              double cost_step, int header_bits, int h, std::int64_t flips,
                              const In<std::uint8_t, 2>& candidates,
                              const In<std::uint8_t, 2>& sort_network,
                              const In<std::uint16_t, 2>& select_network, int level) {
  const Vosh plan = plan_of(weights.shape(1), costs, cost_step, header_bits, h, flips, candidates,
                            sort_network, select_network);
  const std::size_t m = weights.shape(0);
  auto* masks = static_cast<std::uint64_t*>(std::malloc((m * plan.flips + 1) * sizeof(std::uint64_t)));
  if (masks == nullptr) throw std::bad_alloc();
  nb::capsule owner(masks, [](void* memory) noexcept { std::free(memory); });
  {
    ReleasedGil released;
    vosh(plan, weights.data(), m, resolve_level(level), masks);
  }
  return Out<std::uint64_t>(masks, {m, plan.flips}, owner);
}

ProbeResult bound_psm(const In<std::uint64_t, 2>& rows, const In<std::uint32_t, 1>& directory,
                      int directory_bits, int header_bits, const In<std::uint64_t, 2>& queries,
                      const In<float, 2>& weights, const In<float, 1>& costs, double cost_step,
                      int h, std::int64_t flips, const In<std::uint8_t, 2>& candidates,
                      const In<std::uint8_t, 2>& sort_network,
                      const In<std::uint16_t, 2>& select_network, bool first, int level) {
  const Table table = table_of(rows, directory, directory_bits, header_bits);
  const Search search = search_of(queries, table.words, h, first);
  require(weights.shape(0) == search.m, "weights: a row per query");
  const Vosh plan = plan_of(weights.shape(1), costs, cost_step, header_bits, h, flips, candidates,
                            sort_network, select_network);
  Found found;
  {
    ReleasedGil released;
    found = psm(table, search, plan, weights.data(), resolve_level(level));
  }
  return result_of(found);
}

ScanResult bound_scan(const In<std::uint64_t, 2>& rows, const In<std::uint64_t, 2>& queries, int h,
                      bool first, int level) {
  check_rows(rows);
  const Search search = search_of(queries, rows.shape(1), h, first);
  Found found;
  {
    ReleasedGil released;
    found = scan(rows.data(), rows.shape(0), rows.shape(1), search, resolve_level(level));
  }
  Columns all = columns(found.matches);
  return {std::move(all.query), std::move(all.row), std::move(all.distance), found.compared};
}

}  // namespace

// noconvert: an array of another type or order is an error, never a silent copy of a table.
void bind_search(nb::module_& m) {
  m.def("probe", &bound_probe, nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
        nb::arg("directory_bits"), nb::arg("header_bits"), nb::arg("queries").noconvert(),
        nb::arg("flips").noconvert(), nb::arg("h"), nb::arg("first"), nb::arg("level") = -1);
  m.def("vosh", &bound_vosh, nb::arg("weights").noconvert(), nb::arg("costs").noconvert(),
        nb::arg("cost_step"), nb::arg("header_bits"), nb::arg("h"), nb::arg("flips"),
        nb::arg("candidates").noconvert(), nb::arg("sort_network").noconvert(),
        nb::arg("select_network").noconvert(), nb::arg("level") = -1);
  m.def("psm", &bound_psm, nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
        nb::arg("directory_bits"), nb::arg("header_bits"), nb::arg("queries").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("costs").noconvert(), nb::arg("cost_step"),
        nb::arg("h"), nb::arg("flips"), nb::arg("candidates").noconvert(),
        nb::arg("sort_network").noconvert(), nb::arg("select_network").noconvert(),
        nb::arg("first"), nb::arg("level") = -1);
  nb::class_<CheckedTable>(m, "CheckedTable")
      .def(nb::init<In<std::uint64_t, 2>, In<std::uint32_t, 1>, int, In<std::uint64_t, 1>, Verified*,
                    Verified*>(),
           nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
           nb::arg("directory_bits"), nb::arg("ids").noconvert(),
           nb::arg("verified_rows").none() = nb::none(),
           nb::arg("verified_ids").none() = nb::none(), nb::keep_alive<1, 6>(),
           nb::keep_alive<1, 7>());
  nb::class_<CheckedVosh>(m, "CheckedVosh")
      .def(nb::init<In<float, 1>, double, int, int, int, std::int64_t, In<std::uint8_t, 2>,
                    In<std::uint8_t, 2>, In<std::uint16_t, 2>>(),
           nb::arg("costs").noconvert(), nb::arg("cost_step"), nb::arg("bits"),
           nb::arg("header_bits"), nb::arg("h"), nb::arg("flips"),
           nb::arg("candidates").noconvert(), nb::arg("sort_network").noconvert(),
           nb::arg("select_network").noconvert());
  m.def("probe_checked", &probe_checked, nb::arg("table"), nb::arg("header_bits"),
        nb::arg("queries").noconvert(), nb::arg("flips").noconvert(), nb::arg("h"),
        nb::arg("first"), nb::arg("level") = -1);
  m.def("psm_checked", &psm_checked, nb::arg("table"), nb::arg("vosh"),
        nb::arg("queries").noconvert(), nb::arg("weights").noconvert(), nb::arg("first"),
        nb::arg("level") = -1);
  nb::class_<CheckedProbes>(m, "CheckedProbes")
      .def_prop_ro("partitions", &CheckedProbes::partitions)
      .def_prop_ro("size", &CheckedProbes::size);
  m.def("partition_psm", &bound_partition_psm, nb::arg("table"), nb::arg("vosh"),
        nb::arg("queries").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("numbers").noconvert().none(), nb::arg("own"), nb::arg("keep") = true,
        nb::arg("level") = -1);
  m.def("partition_headers", &bound_partition_headers, nb::arg("table"), nb::arg("header_bits"),
        nb::arg("queries").noconvert(), nb::arg("numbers").noconvert().none(),
        nb::arg("keep") = true);
  m.def("sweep", &bound_sweep, nb::arg("table"), nb::arg("probes"), nb::arg("h"), nb::arg("begin"),
        nb::arg("end"), nb::arg("skip").noconvert().none() = nb::none(), nb::arg("level") = -1);
  nb::class_<CheckedPermuted>(m, "CheckedPermuted")
      .def(nb::init<In<std::uint64_t, 2>, In<std::uint32_t, 1>, int, int, In<std::uint64_t, 2>,
                    In<std::uint64_t, 2>, In<std::uint64_t, 1>, In<std::uint64_t, 1>, int,
                    Verified*>(),
           nb::arg("rows").noconvert(), nb::arg("directory").noconvert(),
           nb::arg("directory_bits"), nb::arg("header_bits"), nb::arg("rotations").noconvert(),
           nb::arg("inverse").noconvert(), nb::arg("flips").noconvert(),
           nb::arg("header").noconvert(), nb::arg("most_flips"),
           nb::arg("verified").none() = nb::none(), nb::keep_alive<1, 11>());
  m.def("bphs", &bound_bphs, nb::arg("table"), nb::arg("header_bits"), nb::arg("tables"),
        nb::arg("queries").noconvert(), nb::arg("h"), nb::arg("first"), nb::arg("sweep_queries"),
        nb::arg("level") = -1);
  m.def("permute", &bound_permute, nb::arg("rows").noconvert(), nb::arg("rotations").noconvert(),
        nb::arg("level") = -1);
  m.def("scan", &bound_scan, nb::arg("rows").noconvert(), nb::arg("queries").noconvert(),
        nb::arg("h"), nb::arg("first"), nb::arg("level") = -1);
}

}  // namespace simindex
