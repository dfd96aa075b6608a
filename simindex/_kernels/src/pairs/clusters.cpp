#include "pairs/clusters.hpp"

#include <algorithm>
#include <utility>

#include "storage/sort.hpp"

namespace simindex {
namespace {

// Pairs whose parents are fetched ahead, and at half way the parents of these.
constexpr std::size_t kAhead = 32;

// Numbers put under heads: those of head i are values[starts[i]] to values[starts[i + 1]].
template <class Start>
struct Lists {
  Memory<Start> starts;
  Memory<std::uint32_t> values;

  std::span<const std::uint32_t> of(std::size_t head) const {
    return {values.get() + starts[head], values.get() + starts[head + 1]};
  }
};

// To counts at `starts` + 1, the starts: each count becomes the place where its list begins, and is
// its end once all values are placed.
template <class Start>
void accumulate(Start* starts, std::size_t heads) {
  Start total = 0;
  for (std::size_t head = 0; head <= heads; ++head) total += std::exchange(starts[head], total);
}

// each(put) calls put(head, value) for all, twice in the same order.
template <class Start, class Each>
Lists<Start> listed(std::size_t heads, Each each) {
  Lists<Start> lists{allocate<Start>(heads + 2), nullptr};
  Start* const ends = lists.starts.get() + 1;
  std::fill_n(lists.starts.get(), heads + 2, Start{0});
  each([&](std::size_t head, std::uint32_t) { ++ends[head]; });
  accumulate(ends, heads);
  lists.values = allocate<std::uint32_t>(ends[heads]);
  each([&](std::size_t head, std::uint32_t value) { lists.values[ends[head]++] = value; });
  return lists;
}

bool in_range(const StarInput& input) {
  const std::size_t n = input.first.size();
  for (std::size_t row = 0; row < n; ++row) {
    if (input.first[row] >= n) return false;
    if (input.document[row] != kNoDocument && input.document[row] >= input.documents) return false;
  }
  for (std::size_t i = 0; i < input.a.size(); ++i)
    if (input.a[i] >= n || input.b[i] >= n) return false;
  return true;
}

}  // namespace

Forest::Forest(std::size_t size) : size_(size), parent_(allocate<std::uint32_t>(size)) {
  for (std::size_t i = 0; i < size; ++i) parent_[i] = static_cast<std::uint32_t>(i);
}

std::uint32_t Forest::root(std::uint32_t of) {
  while (parent_[of] != of) {
    parent_[of] = parent_[parent_[of]];
    of = parent_[of];
  }
  return of;
}

bool Forest::unite(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  const auto fetch = [&](std::uint64_t of) {
    if (of < size_) __builtin_prefetch(parent_.get() + of);
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i + kAhead < a.size()) {
      fetch(a[i + kAhead]);
      fetch(b[i + kAhead]);
    }
    if (i + kAhead / 2 < a.size()) {
      const std::uint64_t near_a = a[i + kAhead / 2];
      const std::uint64_t near_b = b[i + kAhead / 2];
      if (near_a < size_ && near_b < size_) {
        fetch(parent_[near_a]);
        fetch(parent_[near_b]);
      }
    }
    if (a[i] >= size_ || b[i] >= size_) return false;
    const std::uint32_t one = root(static_cast<std::uint32_t>(a[i]));
    const std::uint32_t other = root(static_cast<std::uint32_t>(b[i]));
    parent_[std::max(one, other)] = std::min(one, other);
  }
  return true;
}

void Forest::labels(std::span<std::uint32_t> out) {
  // Parents come first, and are their own labels by then.
  for (std::size_t i = 0; i < size_; ++i) out[i] = parent_[i] = parent_[parent_[i]];
}

bool star(const StarInput& input, std::span<std::uint32_t> centre,
          std::span<std::uint16_t> apart, const std::function<bool()>& poll) {
  if (!in_range(input)) return false;
  const std::size_t n = input.first.size();
  const std::size_t documents = input.documents;
  const auto rows = [&](const auto& put) {
    for (std::size_t row = 0; row < n; ++row)
      if (input.document[row] != kNoDocument) put(row);
  };
  const auto rows_of = listed<std::uint32_t>(documents, [&](const auto& put) {
    rows([&](std::size_t row) { put(input.document[row], static_cast<std::uint32_t>(row)); });
  });
  const auto documents_of = listed<std::uint32_t>(n, [&](const auto& put) {
    rows([&](std::size_t row) { put(input.first[row], input.document[row]); });
  });
  const auto edges = [&](const auto& put) {
    for (std::size_t i = 0; i < input.a.size(); ++i) {
      put(input.a[i], input.b[i], input.distance[i]);
      put(input.b[i], input.a[i], input.distance[i]);
    }
  };
  Lists<std::uint64_t> near{allocate<std::uint64_t>(n + 2), nullptr};
  std::uint64_t* const ends = near.starts.get() + 1;
  std::fill_n(near.starts.get(), n + 2, std::uint64_t{0});
  edges([&](std::uint32_t from, std::uint32_t, std::uint16_t) { ++ends[from]; });
  accumulate(ends, n);
  near.values = allocate<std::uint32_t>(ends[n]);
  const auto far = allocate<std::uint16_t>(ends[n]);
  edges([&](std::uint32_t from, std::uint32_t to, std::uint16_t bits) {
    const std::uint64_t place = ends[from]++;
    near.values[place] = to;
    far[place] = bits;
  });
  if (poll()) return true;

  auto order = allocate<std::uint64_t>(documents);
  {
    auto keys = allocate<std::uint64_t>(documents);
    std::ranges::copy(input.rank, keys.get());
    auto own = allocate<std::uint32_t>(n);  // rows of the document at hand, by fingerprint
    std::fill_n(own.get(), n, std::uint32_t{0});
    for (std::size_t x = input.rank.size(); x < documents; ++x) {
      for (const std::uint32_t row : rows_of.of(x)) ++own[input.first[row]];
      std::uint64_t pairs = 0;
      for (const std::uint32_t row : rows_of.of(x)) {
        const std::uint32_t f = input.first[row];
        pairs += documents_of.of(f).size() - own[f];
        for (const std::uint32_t g : near.of(f)) pairs += documents_of.of(g).size() - own[g];
      }
      for (const std::uint32_t row : rows_of.of(x)) own[input.first[row]] = 0;
      keys[x] = ~pairs;
    }
    auto sorted = allocate<std::uint64_t>(documents);
    sort_pairs({keys.get(), nullptr, documents}, sorted.get(), order.get());
  }

  std::fill(centre.begin(), centre.end(), kNoDocument);
  auto nearest = allocate<std::uint32_t>(n);  // centre of each fingerprint
  auto bits_to = allocate<std::uint16_t>(n);
  std::fill_n(nearest.get(), n, kNoDocument);
  auto taken = allocate<std::uint8_t>(documents);
  std::fill_n(taken.get(), documents, std::uint8_t{0});
  for (std::size_t i = 0; i < documents; ++i) {
    if (i % 65536 == 0 && poll()) return true;
    const auto x = static_cast<std::uint32_t>(order[i]);
    if (taken[x]) continue;
    centre[x] = x;
    const auto reach = [&](std::uint32_t g, std::uint16_t bits) {
      if (nearest[g] == kNoDocument)
        for (const std::uint32_t y : documents_of.of(g)) taken[y] = 1;
      else if (std::pair(bits_to[g], nearest[g]) <= std::pair(bits, x))
        return;
      nearest[g] = x;
      bits_to[g] = bits;
    };
    for (const std::uint32_t row : rows_of.of(x)) {
      const std::uint32_t f = input.first[row];
      reach(f, 0);
      for (std::uint64_t at = near.starts[f]; at < near.starts[f + 1]; ++at)
        reach(near.values[at], far[at]);
    }
  }
  for (std::size_t x = 0; x < documents; ++x) {
    apart[x] = 0;
    if (centre[x] == x) continue;
    for (const std::uint32_t row : rows_of.of(x)) {
      const std::uint32_t f = input.first[row];
      if (nearest[f] == kNoDocument) continue;
      if (centre[x] == kNoDocument ||
          std::pair(bits_to[f], nearest[f]) < std::pair(apart[x], centre[x])) {
        centre[x] = nearest[f];
        apart[x] = bits_to[f];
      }
    }
  }
  return true;
}

}  // namespace simindex
