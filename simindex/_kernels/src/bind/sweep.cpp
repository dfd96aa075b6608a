#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "bind/bindings.hpp"
#include "bind/checked.hpp"
#include "bind/found.hpp"
#include "bind/gil.hpp"
#include "bind/vosh.hpp"
#include "cpu/levels.hpp"
#include "methods/probe/sweep.hpp"

namespace nb = nanobind;

namespace simindex {
namespace {

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
                     const std::optional<In<std::uint8_t, 1>>& skip, int level, Room* room,
                     const std::optional<In<std::uint8_t, 2>>& costs, std::uint32_t most) {
  const Partitioned& batch = probes.batch();
  const Table table = checked.table(batch.header_bits);
  require(table.words == batch.words && table.directory_bits == batch.directory_bits,
          "probes: of this table");
  require(begin <= end && end <= batch.partitions(), "partitions: begin <= end <= all");
  Search search = search_of(probes.queries(), table.words, h, false, room);
  const Likely likely = likely_of(costs, most, search, table.words);
  if (costs) search.likely = &likely;
  require(!skip || skip->shape(0) == search.m, "skip: one for each query");
  return with_ids(checked, [&] {
    return sweep_partitioned(table, search, batch, begin, end, skip ? skip->data() : nullptr,
                             resolve_level(level));
  });
}

}  // namespace

void bind_sweep(nb::module_& m) {
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
        nb::arg("end"), nb::arg("skip").noconvert().none() = nb::none(), nb::arg("level") = -1,
        nb::arg("room").none() = nb::none(), nb::arg("costs").noconvert().none() = nb::none(),
        nb::arg("most") = 0);
}

}  // namespace simindex
