// Bytes, offsets and columns: checksums, hashes, heaps, sorting, gathering, slice lists, clusters.
#include <algorithm>
#include <bit>
#include <vector>

#include "bits/records.hpp"
#include "input.hpp"
#include "methods/arrange.hpp"
#include "pairs/clusters.hpp"
#include "simhash/murmur3.hpp"
#include "storage/crc32c.hpp"
#include "storage/heap_offsets.hpp"
#include "storage/rows.hpp"
#include "storage/siphash.hpp"
#include "storage/slice_lists.hpp"
#include "storage/sort.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

namespace {

void bytes(Input& in) {
  const std::size_t chunk = in.in(1, 600);
  const std::uint64_t seed = in.word(), first = in.word();
  const std::uint32_t initial = in.raw<std::uint32_t>();
  Array<std::uint8_t> data(in.left());
  for (std::size_t i = 0; i < data.size; ++i) data[i] = in.byte();
  const std::uint32_t whole = crc32c(data, initial, 0);
  for (int level = 1; level <= widest_level(); ++level) REQUIRE(crc32c(data, initial, level) == whole);
  Array<std::uint32_t> slow((data.size + chunk - 1) / chunk), fast(slow.size);
  crc32c_chunks(data, chunk, seed, first, slow, 0);
  crc32c_chunks(data, chunk, seed, first, fast, widest_level());
  REQUIRE(std::equal(slow.data, slow.data + slow.size, fast.data));
}

void heap(Input& in) {
  Array<std::int64_t> offsets(in.in(1, 40));
  Array<std::int64_t> order(in.in(0, 40));
  const bool rising = in.one_in(2);
  std::int64_t last = 0;
  for (std::size_t i = 0; i < offsets.size; ++i)
    offsets[i] = rising ? (last += in.byte() % 9) : static_cast<std::int64_t>(in.word());
  for (std::size_t i = 0; i < order.size; ++i)
    order[i] = in.one_in(16) ? static_cast<std::int64_t>(in.word())
                             : static_cast<std::int64_t>(in.in(0, offsets.size));
  Array<std::uint8_t> data(in.left());
  for (std::size_t i = 0; i < data.size; ++i) data[i] = in.byte();
  Array<std::int64_t> others(order.size);
  std::reverse_copy(order.data, order.data + order.size, others.data);
  Array<std::uint8_t> equal(order.size);
  const bool named = equal_bytes({offsets, data, order}, {offsets, data, others}, equal);
  for (std::size_t i = 0; named && i < equal.size; ++i)
    REQUIRE(equal[i] == equal[equal.size - 1 - i] && (order[i] != others[i] || equal[i] == 1));
  if (!offsets_hold(offsets, data.size)) return;
  std::uint8_t secret[kSecretBytes];
  for (std::uint8_t& byte : secret) byte = static_cast<std::uint8_t>(data.size);
  const SipState start = sip_start(secret);
  for (std::size_t i = 0; i + 1 < offsets.size; ++i) {
    const auto size = static_cast<std::size_t>(offsets[i + 1] - offsets[i]);
    murmur3_x64_128(data.data + offsets[i], size, 7);
    siphash_128(start, data.data + offsets[i], size);
  }
  Array<std::int64_t> taken(order.size + 1);
  if (!take_offsets(offsets, order, taken)) return;
  Array<std::uint8_t> out(static_cast<std::size_t>(taken[order.size]));
  take_bytes(offsets, data, order, out);
}

void rows(Input& in) {
  const std::size_t words = in.in(1, 4), n = in.in(0, 200);
  const Array<std::uint64_t> values = in.words(n * words);
  Array<std::int64_t> order(in.in(0, 60));
  for (std::size_t i = 0; i < order.size; ++i)
    order[i] = in.one_in(32) ? static_cast<std::int64_t>(in.word())
                             : static_cast<std::int64_t>(in.in(0, n));
  Array<std::uint64_t> out(order.size * words);
  take_rows(values, words, order, out);
  Array<std::uint32_t> places(in.in(0, 60));
  for (std::size_t i = 0; i < places.size; ++i) places[i] = in.offset(n);
  Array<std::uint64_t> picked(places.size);
  take_at(values, places, picked);
  const int bits = static_cast<int>(in.in(0, 8));
  Array<std::uint32_t> directory((std::size_t{1} << bits) + 1);
  header_directory(values, bits, directory);
  REQUIRE(directory[0] == 0 && directory[directory.size - 1] == values.size);
  REQUIRE(std::is_sorted(directory.data, directory.data + directory.size));
  Array<std::uint64_t> keys(values.size), payload(values.size);
  sort_pairs({values.data, in.one_in(2) ? values.data : nullptr, values.size}, keys.data, payload.data);
  REQUIRE(std::is_sorted(keys.data, keys.data + keys.size));
}

void found(Input& in) {
  const std::size_t count = in.in(0, 200), queries = in.in(0, 60);
  const bool within = in.one_in(2) && queries > 0;
  Array<std::int64_t> query(count);
  Array<std::uint64_t> ids = in.words(count);
  Array<std::uint16_t> apart(count);
  for (std::size_t i = 0; i < count; ++i) {
    query[i] = within ? static_cast<std::int64_t>(in.in(0, queries - 1))
                      : static_cast<std::int64_t>(in.word());
    apart[i] = in.byte();
  }
  Array<std::int64_t> sorted_query(count), order(in.one_in(2) ? count : 0);
  Array<std::uint64_t> sorted_ids(count);
  Array<std::uint16_t> sorted_apart(count);
  const Arrangement made = arrange({query, ids, apart}, queries,
                                   {sorted_query, sorted_ids, sorted_apart, order},
                                   in.one_in(64) ? std::size_t{2} : std::size_t{1});
  REQUIRE(!within || made.within);
  if (made.within) REQUIRE(std::is_sorted(sorted_query.data, sorted_query.data + count));
}

void slices(Input& in) {
  const std::size_t words = in.in(1, 3), n = in.in(0, 60);
  const Array<std::uint64_t> values = in.words(n * words);
  const SlicedRows sliced{values, words, in.one_in(128) ? 16 : 8, in.in(1, 100)};
  const std::size_t slice = in.in(0, sliced.slices() - 1);
  Array<std::uint32_t> starts(sliced.list_count() + 1), numbers(n);
  slice_starts(sliced, slice, starts);
  REQUIRE(starts[0] == 0 && starts[starts.size - 1] == n);
  for (std::size_t i = in.in(0, 3); i > 0; --i) starts[in.in(0, starts.size - 1)] = in.offset(n);
  const std::size_t begin = in.in(0, n);
  Array<std::uint32_t> part(in.in(0, n - begin));
  slice_part(sliced, slice, starts, begin, part);
  const std::size_t count = in.in(1, sliced.slices() - slice);
  Array<std::uint32_t> every(count * (sliced.list_count() + 1)), all(count * n);
  slice_lists(sliced, slice, count, 1, every, all);
  for (std::size_t i = 0; i < all.size; ++i) REQUIRE(all[i] < n);
}

void clusters(Input& in) {
  const std::size_t n = in.in(0, 100), count = in.in(0, 100);
  Forest forest(n);
  const Array<std::uint64_t> a = in.words(in.in(0, 9)), b = in.words(a.size);
  forest.unite(a, b);
  Array<std::uint64_t> c(count), d(count);
  Array<std::uint32_t> first(n), document(n), e(count), f(count);
  Array<std::uint16_t> apart(count);
  for (std::size_t i = 0; i < count; ++i) {
    c[i] = in.offset(n), d[i] = in.offset(n);
    e[i] = in.offset(n), f[i] = in.offset(n);
    apart[i] = in.byte();
  }
  forest.unite(c, d);
  Array<std::uint32_t> labels(n);
  forest.labels(labels);
  for (std::size_t i = 0; i < n; ++i) REQUIRE(labels[i] <= i);
  const std::size_t documents = in.in(0, n);
  for (std::size_t i = 0; i < n; ++i) first[i] = in.offset(n), document[i] = in.offset(documents);
  Array<std::uint32_t> centre(documents);
  Array<std::uint16_t> from(documents);
  star({first, document, documents, e, f, apart}, centre, from, [] { return false; });
}

void records(Input& in) {
  const std::size_t words = in.in(1, 40), bytes = 8 * words + 1, n = in.in(1, 20), m = in.in(1, 20);
  Array<std::uint8_t> some(n * bytes), others(m * bytes);
  for (std::size_t i = 0; i < some.size; ++i) some[i] = in.byte();
  for (std::size_t i = 0; i < others.size; ++i) others[i] = some[i % some.size] ^ (in.byte() & in.byte());
  Array<std::int64_t> one(in.in(0, 60));
  Array<std::int64_t> other(one.size);
  for (std::size_t i = 0; i < one.size; ++i) {
    one[i] = static_cast<std::int64_t>(in.in(0, n - 1));
    other[i] = static_cast<std::int64_t>(in.in(0, m - 1));
  }
  for (int level = 0; level <= widest_level(); ++level) {
    Array<std::uint16_t> apart(one.size);
    record_distances({some.data, words}, one.data, {others.data, words}, other.data, one.size,
                     apart.data, level);
    for (std::size_t i = 0; i < one.size; ++i) {
      std::size_t bits = 0;
      for (std::size_t at = 0; at < 8 * words; ++at)
        bits += static_cast<std::size_t>(std::popcount(static_cast<std::uint8_t>(
            some[static_cast<std::size_t>(one[i]) * bytes + at] ^
            others[static_cast<std::size_t>(other[i]) * bytes + at])));
      REQUIRE(apart[i] == bits);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  switch (in.byte() % 7) {
    case 0: bytes(in); break;
    case 1: heap(in); break;
    case 2: rows(in); break;
    case 3: found(in); break;
    case 4: slices(in); break;
    case 5: records(in); break;
    default: clusters(in);
  }
  return 0;
}
