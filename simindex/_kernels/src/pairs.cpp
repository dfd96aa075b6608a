#include "pairs.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "pairs_group.hpp"
#include "workers.hpp"

namespace simindex {
namespace {

constexpr std::uint64_t kMixer = 0x9E3779B97F4A7C15u;
constexpr std::size_t kGroupRows = 8;  // wanted; groups are larger where blocks are narrow
constexpr int kMostKeyBits = 22;

struct Record {
  std::uint64_t word;
  std::uint32_t row;
  std::uint32_t key;
};

// The key by which rows are put together.
class Key {
 public:
  Key(const PairRows& rows, const BlockChoice& choice) : rows_(rows) {
    std::uint64_t width = 0;
    for (const std::uint32_t block : choice.agreeing) {
      const Bits& bits = choice.blocks[block];
      width += bits.width;
      for (std::uint32_t at = bits.first; at < bits.first + bits.width;) {
        const std::uint32_t some = std::min(64 - at % 64, bits.first + bits.width - at);
        parts_.push_back({at / 64, (~std::uint64_t{0} << (64 - some)) >> at % 64});
        at += some;
      }
    }
    const auto enough = static_cast<std::uint64_t>(std::bit_width(rows.n / kGroupRows));
    bits_ = static_cast<int>(std::min<std::uint64_t>({width, enough, kMostKeyBits}));
    if (rows.words == 1 && choice.agreeing.size() == 1 && width == static_cast<std::uint64_t>(bits_))
      left_ = static_cast<int>(choice.blocks[choice.agreeing[0]].first);
  }

  int bits() const { return bits_; }

  std::uint32_t of(std::size_t row) const {
    if (bits_ == 0) return 0;
    const std::uint64_t* from = rows_.rows + row * rows_.words;
    if (left_ >= 0) return static_cast<std::uint32_t>((from[0] << left_) >> (64 - bits_));
    std::uint64_t mixed = 0;
    for (const Part& part : parts_) {
      mixed = (mixed ^ (from[part.word] & part.mask)) * kMixer;
      mixed ^= mixed >> 32;
    }
    return static_cast<std::uint32_t>((mixed * kMixer) >> (64 - bits_));
  }

 private:
  struct Part {
    std::size_t word;
    std::uint64_t mask;
  };

  PairRows rows_;
  std::vector<Part> parts_;
  int bits_ = 0;
  int left_ = -1;  // the key is a block as it stands, so far from the top; or a hash
};

// Records by the upper digit of their key, in the order of rows.
struct Parts {
  Parts(const Wish& wish, const Key& key)
      : lower_bits(key.bits() / 2), records(allocate<Record>(wish.rows.n)),
        starts((std::size_t{1} << (key.bits() - lower_bits)) + 1) {
    const std::size_t n = wish.rows.n;
    for (std::size_t row = 0; row < n; ++row) ++starts[key.of(row) >> lower_bits];
    std::size_t start = 0;
    for (std::size_t& count : starts) start += std::exchange(count, start);
    std::vector<std::size_t> place(starts.begin(), starts.end() - 1);
    for (std::size_t row = 0; row < n; ++row) {
      const std::uint32_t k = key.of(row);
      records[place[k >> lower_bits]++] = {wish.word(row), static_cast<std::uint32_t>(row), k};
    }
  }

  std::size_t size() const { return starts.size() - 1; }

  int lower_bits;
  Memory<Record> records;
  std::vector<std::size_t> starts;
};

// One thread's share: a part at a time, by the lower digit.
class Worker {
 public:
  Worker(const Parts& parts, const Wish& wish, int level) : groups(wish, level), parts_(parts) {}

  void add(std::size_t part, const std::function<bool()>& stopped) {
    const std::size_t begin = parts_.starts[part];
    const std::size_t size = parts_.starts[part + 1] - begin;
    if (size < 2) return;
    if (size > capacity_) {
      capacity_ = size;
      words_.reset();
      rows_.reset();
      words_ = allocate<std::uint64_t>(size);
      rows_ = allocate<std::uint32_t>(size);
    }
    const Record* const records = parts_.records.get() + begin;
    const std::uint32_t mask = (std::uint32_t{1} << parts_.lower_bits) - 1;
    places_.assign(mask + 1, 0);
    for (std::size_t i = 0; i < size; ++i) ++places_[records[i].key & mask];
    std::uint32_t start = 0;
    for (std::uint32_t& place : places_) start += std::exchange(place, start);
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t to = places_[records[i].key & mask]++;
      words_[to] = records[i].word;
      rows_[to] = records[i].row;
    }
    start = 0;
    for (const std::uint32_t end : places_) {
      groups.add(words_.get() + start, rows_.get() + start, end - start, stopped);
      start = end;
    }
  }

  GroupPairs groups;

 private:
  const Parts& parts_;
  std::vector<std::uint32_t> places_;
  std::size_t capacity_ = 0;
  Memory<std::uint64_t> words_;
  Memory<std::uint32_t> rows_;
};

// To pairs of rows that represent equal ones, the pairs of those; and, if asked, of equal rows themselves.
void expand(FoundPairs& pairs, std::vector<Equal>& equal, bool with_equal,
            const std::function<bool()>& stopped) {
  if (equal.empty()) return;
  std::sort(equal.begin(), equal.end(), [](const Equal& x, const Equal& y) {
    return std::pair(x.first, x.row) < std::pair(y.first, y.row);
  });
  const auto of = [&](std::uint32_t first) {
    const auto begin = std::lower_bound(equal.begin(), equal.end(), first,
                                        [](const Equal& x, std::uint32_t y) { return x.first < y; });
    auto end = begin;
    while (end != equal.end() && end->first == first) ++end;
    return std::span(begin, end);
  };
  const std::size_t distinct = pairs.size;
  for (std::size_t i = 0; i < distinct && !stopped(); ++i) {
    const std::uint32_t a = pairs.a[i];
    const std::uint32_t b = pairs.b[i];
    const std::uint64_t bits = pairs.distance[i];
    const auto like_a = of(a);
    const auto like_b = of(b);
    for (const Equal& x : like_a) pairs.push(x.row, b, bits);
    for (const Equal& y : like_b) {
      pairs.push(a, y.row, bits);
      for (const Equal& x : like_a) pairs.push(x.row, y.row, bits);
    }
  }
  if (!with_equal) return;
  for (std::size_t i = 0; i < equal.size() && !stopped(); ++i) {
    pairs.push(equal[i].first, equal[i].row, 0);
    for (std::size_t j = i + 1; j < equal.size() && equal[j].first == equal[i].first; ++j)
      pairs.push(equal[i].row, equal[j].row, 0);
  }
}

}  // namespace

void FoundPairs::grow(std::size_t wanted) {
  const auto moved = [&]<class T>(Memory<T>& column) {
    Memory<T> larger = allocate<T>(wanted);
    std::copy_n(column.get(), size, larger.get());
    column = std::move(larger);
  };
  moved(a);
  moved(b);
  moved(distance);
  capacity_ = wanted;
}

void FoundPairs::append(const FoundPairs& other) {
  if (size + other.size > capacity_) grow(size + other.size);
  std::copy_n(other.a.get(), other.size, a.get() + size);
  std::copy_n(other.b.get(), other.size, b.get() + size);
  std::copy_n(other.distance.get(), other.size, distance.get() + size);
  size += other.size;
}

FoundPairs block_pairs(const PairRows& rows, const BlockChoice& choice, std::uint64_t h,
                       std::size_t threads, int level, const std::function<bool()>& poll) {
  FoundPairs found;
  if (rows.n < 2) return found;
  std::vector<Equal> equal;
  const Wish wish(rows, choice, h);
  {
    const Parts parts(wish, Key(rows, choice));
    split(
        parts.size(), threads, [&] { return Worker(parts, wish, level); },
        [&](Worker& worker, std::size_t part, const auto& stopped) {
          worker.add(part, stopped);
        },
        [&](Worker& worker) {
          if (found.size == 0)
            found = std::move(worker.groups.pairs);
          else
            found.append(worker.groups.pairs);
          equal.insert(equal.end(), worker.groups.equal.begin(), worker.groups.equal.end());
        },
        poll);
  }
  // Equal rows agree on every block, so their first agreeing ones are the first of all.
  const bool first_of_all =
      choice.agreeing.empty() || choice.agreeing.back() + 1 == choice.agreeing.size();
  expand(found, equal, first_of_all, poll);
  return found;
}

}  // namespace simindex
