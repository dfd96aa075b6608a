// Probes and PSM over tables whose directories lie.
#include "plans.hpp"
#include "tables.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

namespace {

int searched(Input in) {
  const std::size_t words = in.one_in(8) ? in.in(1, 17) : in.in(1, 2);
  const OwnTable own(in, words);
  const std::size_t m = in.in(0, 40);
  const Array<std::uint64_t> queries = in.words(m * words);
  const int level = in.level();
  Search search{queries.data, m, in.in(0, 9) * in.in(1, 40), in.one_in(2)};
  Found found;
  if (in.one_in(2)) {
    const bool shared = in.one_in(2);
    const std::size_t k = in.in(0, 20);
    const Array<std::uint64_t> flips = in.words(shared ? k : k * m);
    found = probe(own.table, search, flips.data, k, shared ? 0 : k, level);
  } else {
    const OwnPlan plan(in, words, own.table.header_bits, own.table.header_bits > 0 && in.one_in(2));
    const Array<float> weights = in.numbers(m * 64 * words);
    search.h = static_cast<std::uint64_t>(plan.plan.h);
    found = psm(own.table, search, plan.plan, weights.data, level);
  }
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
