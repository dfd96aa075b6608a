#include "pairs.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
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
  Key(const PairRows& rows, const BlockChoice& choice, std::size_t n) : rows_(rows) {
    std::uint64_t width = 0;
    for (const std::uint32_t block : choice.agreeing) {
      const Bits& bits = choice.blocks[block];
      width += bits.width;
      each_part(bits, [&](std::size_t word, std::uint64_t mask) {
        parts_.push_back({word, mask});
        return true;
      });
    }
    const auto enough = static_cast<std::uint64_t>(std::bit_width(n / kGroupRows));
    bits = static_cast<int>(std::min<std::uint64_t>({width, enough, kMostKeyBits}));
    if (rows.words == 1 && choice.agreeing.size() == 1 && width == static_cast<std::uint64_t>(bits))
      left = static_cast<int>(choice.blocks[choice.agreeing[0]].first);
  }

  // The key is the block as it stands in the word.
  std::uint32_t of_block(std::uint64_t word) const {
    return static_cast<std::uint32_t>((word << left) >> (64 - bits));
  }

  // Or a hash of the blocks.
  std::uint32_t of(std::size_t row) const {
    if (bits == 0) return 0;
    const std::uint64_t* from = rows_.rows + row * rows_.words;
    std::uint64_t mixed = 0;
    for (const Part& part : parts_) {
      mixed = (mixed ^ (from[part.word] & part.mask)) * kMixer;
      mixed ^= mixed >> 32;
    }
    return static_cast<std::uint32_t>((mixed * kMixer) >> (64 - bits));
  }

  int bits = 0;
  int left = -1;  // of a block as it stands, so far from the top

 private:
  struct Part {
    std::size_t word;
    std::uint64_t mask;
  };

  PairRows rows_;
  std::vector<Part> parts_;
};

// Records by the upper digit of their key, in the order of rows.
class Parts {
 public:
  // Of all rows, or of those `kept`.
  void fill(const Wish& wish, const Key& key, std::span<const std::uint32_t> kept,
            std::size_t threads) {
    const std::size_t n = kept.empty() ? wish.rows.n : kept.size();
    if (n > capacity_) {
      records.reset();
      records = allocate<Record>(n);
      capacity_ = n;
    }
    const auto fill = [&](const auto& word_of, const auto& key_of) {
      if (kept.empty())
        fill_with(n, key, threads, [](std::size_t i) { return static_cast<std::uint32_t>(i); },
                  word_of, key_of);
      else
        fill_with(n, key, threads, [kept](std::size_t i) { return kept[i]; }, word_of, key_of);
    };
    const std::uint64_t* const words = wish.rows.rows;
    if (key.left >= 0)
      fill([words](std::size_t row) { return words[row]; },
           [key = key, words](std::size_t row) { return key.of_block(words[row]); });
    else if (wish.rows.words == 1)
      fill([words](std::size_t row) { return words[row]; },
           [&key](std::size_t row) { return key.of(row); });
    else
      fill([&wish](std::size_t row) { return wish.word(row); },
           [&key](std::size_t row) { return key.of(row); });
  }

  std::size_t size() const { return starts.size() - 1; }

  int lower_bits = 0;
  Memory<Record> records;
  std::vector<std::size_t> starts;

 private:
  template <class RowOf, class WordOf, class KeyOf>
  void fill_with(std::size_t n, const Key& key, std::size_t threads, const RowOf& row_of,
                 const WordOf& word_of, const KeyOf& key_of) {
    lower_bits = key.bits / 2;
    const int lower = lower_bits;
    const std::size_t digits = std::size_t{1} << (key.bits - lower);
    threads = std::min(threads, n / digits + 1);
    std::vector<std::vector<std::size_t>> places(threads, std::vector<std::size_t>(digits));
    const auto each = [&](const auto& work) {
      split(
          threads, threads, [] { return 0; },
          [&](int, std::size_t share, const auto&) {
            work(places[share].data(), n * share / threads, n * (share + 1) / threads);
          },
          [](int) {}, [] { return false; });
    };
    each([&](std::size_t* place, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) ++place[key_of(row_of(i)) >> lower];
    });
    starts.assign(digits + 1, n);
    std::size_t start = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) {
      starts[digit] = start;
      for (auto& place : places) start += std::exchange(place[digit], start);
    }
    Record* const to = records.get();
    each([&](std::size_t* place, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t row = row_of(i);
        const std::uint32_t k = key_of(row);
        to[place[k >> lower]++] = {word_of(row), row, k};
      }
    });
  }

  std::size_t capacity_ = 0;
};

// One thread's share: a part at a time, by the lower digit.
class Worker {
 public:
  Worker(const Parts& parts, const Wish& wish, bool may_repeat, int level)
      : groups(wish, level), parts_(parts), may_repeat_(may_repeat) {}

  void add(std::size_t part, const std::function<bool()>& stopped) {
    const std::size_t begin = parts_.starts[part];
    const std::size_t size = parts_.starts[part + 1] - begin;
    if (size < 2) return;
    if (size > capacity_) {
      capacity_ = size + size / 8;
      words_.reset();
      rows_.reset();
      words_ = allocate<std::uint64_t>(capacity_ + kPaddingWords);
      rows_ = allocate<std::uint32_t>(capacity_);
    }
    const Record* const records = parts_.records.get() + begin;
    const std::uint32_t mask = (std::uint32_t{1} << parts_.lower_bits) - 1;
    ends_.assign(mask + 1, 0);
    std::uint32_t* const ends = ends_.data();
    for (std::size_t i = 0; i < size; ++i) ++ends[records[i].key & mask];
    std::uint32_t start = 0;
    for (std::uint32_t& end : ends_) start += std::exchange(end, start);
    std::uint64_t* const words = words_.get();
    std::uint32_t* const rows = rows_.get();
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t to = ends[records[i].key & mask]++;
      words[to] = records[i].word;
      rows[to] = records[i].row;
    }
    std::fill_n(words + size, kPaddingWords, 0);
    groups.add(words, rows, ends, ends_.size(), may_repeat_, stopped);
  }

  GroupPairs groups;

 private:
  const Parts& parts_;
  const bool may_repeat_;
  std::vector<std::uint32_t> ends_;
  std::size_t capacity_ = 0;
  Memory<std::uint64_t> words_;
  Memory<std::uint32_t> rows_;
};

// Passes over the same rows, one choice of blocks after the other.
class Passes {
 public:
  Passes(const PairRows& rows, const PairSearch& search) : rows_(rows), search_(search) {}

  void add(const BlockChoice& choice) {
    const Wish wish(rows_, choice, search_.h);
    const std::size_t n = kept_.empty() ? rows_.n : kept_.size();
    if (n < 2) return;
    parts_.fill(wish, Key(rows_, choice, n), kept_, search_.threads);
    std::atomic<bool> too_many{false};
    split(
        parts_.size(), search_.threads,
        [&] { return Worker(parts_, wish, may_repeat_, search_.level); },
        [&](Worker& worker, std::size_t part, const auto& stopped) {
          worker.add(part, [&] {
            if (worker.groups.pairs.size > search_.most) too_many = true;
            return too_many || stopped();
          });
        },
        [&](Worker& worker) {
          if (found.pairs.size == 0)
            found.pairs = std::move(worker.groups.pairs);
          else
            found.pairs.append(worker.groups.pairs);
          found.equal.insert(found.equal.end(), worker.groups.equal.begin(),
                             worker.groups.equal.end());
        },
        [&] { return too_many || search_.poll(); });
    found.too_many = too_many || found.pairs.size > search_.most;
    if (!may_repeat_) return;
    may_repeat_ = false;
    if (found.equal.empty()) return;
    std::vector<bool> repeats(rows_.n);
    for (const Equal& one : found.equal) repeats[one.row] = true;
    kept_.reserve(rows_.n - found.equal.size());
    for (std::size_t row = 0; row < rows_.n; ++row)
      if (!repeats[row]) kept_.push_back(static_cast<std::uint32_t>(row));
  }

  DistinctPairs found;

 private:
  const PairRows& rows_;
  const PairSearch& search_;
  Parts parts_;
  bool may_repeat_ = true;            // until the first pass, which sees all equal rows together
  std::vector<std::uint32_t> kept_;   // if some repeat, the first of each
};

// Rows by the first of those equal to them: offsets (n + 1) into `rows`.
struct Repeats {
  Repeats(const std::vector<Equal>& equal, std::size_t n)
      : offsets(n + 1), rows(equal.size()) {
    for (const Equal& one : equal) ++offsets[one.first];
    std::uint32_t start = 0;
    for (std::uint32_t& offset : offsets) start += std::exchange(offset, start);
    for (const Equal& one : equal) rows[offsets[one.first]++] = one.row;
    std::copy_backward(offsets.begin(), offsets.end() - 1, offsets.end());
    offsets[0] = 0;
  }

  std::span<const std::uint32_t> of(std::uint32_t first) const {
    return std::span(rows).subspan(offsets[first], offsets[first + 1] - offsets[first]);
  }

  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> rows;
};

}  // namespace

void FoundPairs::reserve(std::size_t wanted) {
  if (wanted <= capacity_) return;
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
  reserve(size + other.size);
  std::copy_n(other.a.get(), other.size, a.get() + size);
  std::copy_n(other.b.get(), other.size, b.get() + size);
  std::copy_n(other.distance.get(), other.size, distance.get() + size);
  size += other.size;
}

DistinctPairs block_pairs(const PairRows& rows, const BlockChoice& choice,
                          const PairSearch& search) {
  Passes passes(rows, search);
  passes.add(choice);
  return std::move(passes.found);
}

DistinctPairs all_pairs(const PairRows& rows, std::span<const Bits> blocks, std::size_t agreeing,
                        const PairSearch& search) {
  Passes passes(rows, search);
  std::vector<std::uint32_t> chosen(agreeing);
  std::iota(chosen.begin(), chosen.end(), 0);
  for (;;) {
    passes.add({blocks, chosen});
    if (passes.found.too_many || search.poll()) break;
    // The next choice: the last block that can move does, and those behind it stand next to it.
    std::size_t moved = agreeing;
    while (moved != 0 && chosen[moved - 1] == blocks.size() - agreeing + moved - 1) --moved;
    if (moved == 0) break;
    std::iota(chosen.begin() + static_cast<std::ptrdiff_t>(moved) - 1, chosen.end(),
              chosen[moved - 1] + 1);
  }
  return std::move(passes.found);
}

double pairs_of_rows(const DistinctPairs& found, std::size_t n, bool with_equal) {
  auto pairs = static_cast<double>(found.pairs.size);
  if (found.equal.empty()) return pairs;
  std::vector<std::uint32_t> rows(n, 1);
  for (const Equal& one : found.equal) ++rows[one.first];
  pairs = 0;
  for (std::size_t i = 0; i < found.pairs.size; ++i)
    pairs += static_cast<double>(rows[found.pairs.a[i]]) * rows[found.pairs.b[i]];
  if (with_equal)
    for (const std::uint32_t some : rows) pairs += static_cast<double>(some) * (some - 1.0) / 2;
  return pairs;
}

void expand(DistinctPairs& found, std::size_t n, bool with_equal, const PairSearch& search) {
  const double pairs_then = pairs_of_rows(found, n, with_equal);
  found.too_many |= pairs_then > static_cast<double>(search.most);
  if (found.too_many || found.equal.empty()) return;
  FoundPairs& pairs = found.pairs;
  pairs.reserve(static_cast<std::size_t>(pairs_then));
  const Repeats like(found.equal, n);
  const std::size_t distinct = pairs.size;
  constexpr std::size_t kPoll = 1024;
  for (std::size_t i = 0; i < distinct; ++i) {
    if (i % kPoll == 0 && search.poll()) return;
    const std::uint32_t a = pairs.a[i];
    const std::uint32_t b = pairs.b[i];
    const std::uint64_t bits = pairs.distance[i];
    for (const std::uint32_t x : like.of(a)) pairs.push(x, b, bits);
    for (const std::uint32_t y : like.of(b)) {
      pairs.push(a, y, bits);
      for (const std::uint32_t x : like.of(a)) pairs.push(x, y, bits);
    }
  }
  if (!with_equal) return;
  for (std::uint32_t first = 0; first < n; ++first) {
    const auto rows = like.of(first);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i % kPoll == 0 && search.poll()) return;
      pairs.push(first, rows[i], 0);
      for (std::size_t j = i + 1; j < rows.size(); ++j) pairs.push(rows[i], rows[j], 0);
    }
  }
}

void sort_pairs_by_rows(const FoundPairs& pairs, std::size_t n, std::int64_t* a, std::int64_t* b,
                        std::uint16_t* distance) {
  if (pairs.size == 0) return;
  // Pairs of one row become one run, each pair (b, distance) as one number, sorted by itself.
  Memory<std::uint64_t> place = allocate<std::uint64_t>(n);
  std::fill_n(place.get(), n, 0);
  for (std::size_t i = 0; i < pairs.size; ++i) ++place[std::min(pairs.a[i], pairs.b[i])];
  std::uint64_t start = 0;
  for (std::size_t row = 0; row < n; ++row) start += std::exchange(place[row], start);
  for (std::size_t i = 0; i < pairs.size; ++i) {
    const auto [low, high] = std::minmax(pairs.a[i], pairs.b[i]);
    b[place[low]++] = static_cast<std::int64_t>(std::uint64_t{high} << 16 | pairs.distance[i]);
  }
  std::uint64_t begin = 0;
  for (std::size_t row = 0; row < n; ++row) {
    const std::uint64_t end = place[row];
    if (begin == end) continue;
    std::sort(b + begin, b + end);
    for (; begin < end; ++begin) {
      distance[begin] = static_cast<std::uint16_t>(b[begin]);
      a[begin] = static_cast<std::int64_t>(row);
      b[begin] >>= 16;
    }
  }
}

void sort_equal(const std::vector<Equal>& equal, std::size_t n, std::int64_t* first,
                std::int64_t* row) {
  if (equal.empty()) return;
  const Repeats like(equal, n);
  std::copy(like.rows.begin(), like.rows.end(), row);
  for (std::uint32_t of = 0; of < n; ++of) first = std::fill_n(first, like.of(of).size(), of);
}

}  // namespace simindex
