// Probes by partition, and sweeps of tables whose directories lie.
#include "methods/probe/sweep.hpp"
#include "plans.hpp"
#include "tables.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

namespace {

int searched(Input in) {
  const std::size_t words = in.in(1, 3);
  const OwnTable own(in, words, 1);
  const std::size_t m = in.in(1, 120);
  const Array<std::uint64_t> queries = in.words(m * words);
  const int level = in.level();
  const Search search{queries.data, m, in.in(0, 9) * in.in(1, 20), false};
  Array<std::uint32_t> numbers(in.in(0, 200));
  for (std::size_t i = 0; i < numbers.size; ++i)
    numbers[i] = static_cast<std::uint32_t>(in.in(0, m - 1));
  const bool all = in.one_in(2);
  const Chosen chosen{queries.data, all ? nullptr : numbers.data, all ? m : numbers.size};
  const bool keep = in.one_in(2);
  std::size_t each = 1;
  std::unique_ptr<Partitioned> batch;
  if (in.one_in(2)) {
    batch = std::make_unique<Partitioned>(own.table, chosen.count, keep);
    partition_headers(chosen, *batch);
  } else {
    const OwnPlan plan(in, words, own.table.header_bits, true);
    if (!plan.plan.networked()) return 0;
    const Array<float> weights = in.numbers(m * 64 * words);
    const bool own_header = in.one_in(2);
    each = plan.plan.flips + own_header;
    batch = std::make_unique<Partitioned>(own.table, chosen.count * each, keep);
    partition_psm(chosen, plan.plan, weights.data, own_header, level, *batch);
  }
  REQUIRE(batch->size == chosen.count * each);
  Array<std::uint8_t> skip(m);
  for (std::size_t i = 0; i < m; ++i) skip[i] = in.byte() & 1;
  const std::size_t begin = in.in(0, batch->partitions());
  const std::size_t end = in.in(begin, batch->partitions());
  const Found found = sweep_partitioned(own.table, search, *batch, begin, end,
                                        in.one_in(2) ? skip.data : nullptr, level);
  check(found.matches, own.rows.data, own.table.n, words, search);
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    return searched({data, size});
  } catch (const DamagedChunk&) {
    return 0;
  }
}
