#include "pairs/pairs.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <utility>

#include "cpu/intrinsics.hpp"
#include "cpu/workers.hpp"
#include "pairs/group.hpp"
#include "storage/sort.hpp"

namespace simindex {
namespace {

constexpr std::uint64_t kMixer = 0x9E3779B97F4A7C15u;
constexpr std::size_t kGroupRows = 8;  // wanted; groups are larger where blocks are narrow
constexpr int kMostKeyBits = 22;
// So many rows that equal an earlier one are left where they are: to leave out each pair of theirs that is
// found takes less time than to fetch every row by its number.
constexpr std::size_t kFewRepeats = 1 << 16;
constexpr std::size_t kAhead = 128;  // rows or records that are asked for ahead of a pass over them

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

// Records on their way to memory, a line of each digit, so that a line is written once, whole, and not read
// before: all pairs of 10 M rows take 0.96 s in place of 1.08 s, with each record written where it goes.
class Lines {
 public:
  // The first record of digit i goes to to[place[i]].
  Lines(Record* to, const std::size_t* place, std::size_t digits)
      : to_(to), first_(place, place + digits), next_(first_),
        memory_(allocate<Record>((digits + 1) * kLine)), lines_(memory_.get()) {
    while (reinterpret_cast<std::uintptr_t>(lines_) % 64 != 0) ++lines_;
  }

  void add(std::size_t digit, const Record& record) {
    const std::size_t at = next_[digit]++;
    Record* const line = lines_ + digit * kLine;
    line[at % kLine] = record;
    if (at % kLine == kLine - 1) write(digit, at + 1 - kLine);
  }

  void finish() {
    for (std::size_t digit = 0; digit < first_.size(); ++digit)
      write_part(digit, next_[digit] / kLine * kLine, next_[digit]);
#if SIMINDEX_X86
    _mm_sfence();
#endif
  }

 private:
  static constexpr std::size_t kLine = 4;

  SIMINDEX_INLINE void write(std::size_t digit, std::size_t begin) {
    if (begin < first_[digit]) [[unlikely]]
      return write_part(digit, begin, begin + kLine);
    const Record* const line = lines_ + digit * kLine;
#if SIMINDEX_X86
    for (std::size_t i = 0; i < kLine; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to_ + begin + i),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(line + i)));
#else
    std::copy_n(line, kLine, to_ + begin);
#endif
  }

  void write_part(std::size_t digit, std::size_t begin, std::size_t end) {
    const Record* const line = lines_ + digit * kLine;
    for (std::size_t at = std::max(begin, first_[digit]); at < end; ++at) to_[at] = line[at % kLine];
  }

  Record* to_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> next_;
  Memory<Record> memory_;
  Record* lines_;
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
           [key = key, words](std::size_t row) {
             __builtin_prefetch(words + row + kAhead);
             return key.of_block(words[row]);
           });
    else if (wish.rows.words == 1)
      fill([words](std::size_t row) { return words[row]; },
           [&key](std::size_t row) { return key.of(row); });
    else
      fill([&wish](std::size_t row) { return wish.word(row); },
           [&key](std::size_t row) { return key.of(row); });
  }

  std::size_t size() const { return starts.size() - 1; }

  int lower_bits = 0;
  std::uint32_t usual_rows = 0;  // of a group of uniform rows, at most
  Memory<Record> records;
  std::vector<std::size_t> starts;

 private:
  template <class RowOf, class WordOf, class KeyOf>
  void fill_with(std::size_t n, const Key& key, std::size_t threads, const RowOf& row_of,
                 const WordOf& word_of, const KeyOf& key_of) {
    lower_bits = key.bits / 2;
    usual_rows = static_cast<std::uint32_t>(std::min<std::size_t>(n >> key.bits, kDirectRows)) * 2 + 32;
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
    each([&](std::size_t* place, std::size_t begin, std::size_t end) {
      Lines lines(records.get(), place, digits);
      for (std::size_t i = begin; i < end; ++i) {
        const std::uint32_t row = row_of(i);
        const std::uint32_t k = key_of(row);
        lines.add(k >> lower, {word_of(row), row, k});
      }
      lines.finish();
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
    if (parts_.starts[part + 1] - parts_.starts[part] < 2) return;
    partition(part);
    groups.add(words(), rows(), ends_.data(), ends_.size(), may_repeat_, parts_.usual_rows,
               stopped);
  }

  // The distinct rows of a part that is one group; how many they are.
  std::uint32_t gather(std::size_t part) {
    partition(part);
    const std::uint32_t size = ends_.back();
    return may_repeat_ ? groups.without_repeats(words(), rows(), size) : size;
  }

  std::uint64_t* words() { return words_.get(); }
  std::uint32_t* rows() { return rows_.get(); }

  GroupPairs groups;

 private:
  void partition(std::size_t part) {
    const std::size_t begin = parts_.starts[part];
    const std::size_t size = parts_.starts[part + 1] - begin;
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
    for (std::size_t i = 0; i < size; ++i) {
      __builtin_prefetch(records + i + kAhead);
      ++ends[records[i].key & mask];
    }
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
  }

  const Parts& parts_;
  const bool may_repeat_;
  std::vector<std::uint32_t> ends_;
  std::size_t capacity_ = 0;
  Memory<std::uint64_t> words_;
  Memory<std::uint32_t> rows_;
};

bool is_marked(std::span<const std::uint64_t> marks, std::size_t row) {
  return (marks[row / 64] >> row % 64 & 1) != 0;
}

// A bit for each of n rows: whether it is the given one of equal rows.
std::vector<std::uint64_t> marked(const std::vector<Equal>& equal, std::size_t n,
                                  std::uint32_t Equal::*which) {
  std::vector<std::uint64_t> marks(n / 64 + 1);
  for (const Equal& one : equal) marks[one.*which / 64] |= std::uint64_t{1} << one.*which % 64;
  return marks;
}

// Passes over the same rows, one choice of blocks after the other.
class Passes {
 public:
  Passes(const PairRows& rows, const PairSearch& search) : rows_(rows), search_(search) {}

  void add(const BlockChoice& choice) {
    Wish wish(rows_, choice, search_.h);
    if (kept_.empty()) wish.repeats = repeats_;
    const std::size_t n = kept_.empty() ? rows_.n : kept_.size();
    if (n < 2) return;
    parts_.fill(wish, Key(rows_, choice, n), kept_, search_.threads);
    if (parts_.size() == 1 && search_.threads > 1 && n > 4 * kTileRows) {
      // One part is one group: its tiles are shared out.
      Worker whole(parts_, wish, may_repeat_, search_.level);
      const std::uint32_t size = whole.gather(0);
      found.equal = std::move(whole.groups.equal);
      run((size + kTileRows - 1) / kTileRows, [&] { return GroupPairs(wish, search_.level); },
          [&](GroupPairs& groups, std::size_t tile, const auto& stopped) {
            groups.add_tile(whole.words(), whole.rows(), size,
                            static_cast<std::uint32_t>(tile) * kTileRows, stopped);
          },
          [](GroupPairs& groups) -> GroupPairs& { return groups; });
    } else {
      run(parts_.size(), [&] { return Worker(parts_, wish, may_repeat_, search_.level); },
          [](Worker& worker, std::size_t part, const auto& stopped) { worker.add(part, stopped); },
          [](Worker& worker) -> GroupPairs& { return worker.groups; });
    }
    if (!may_repeat_) return;
    may_repeat_ = false;
    if (found.equal.empty()) return;
    repeats_ = marked(found.equal, rows_.n, &Equal::row);
    if (found.equal.size() <= std::min(kFewRepeats, rows_.n / 256)) return;
    kept_.reserve(rows_.n - found.equal.size());
    for (std::size_t row = 0; row < rows_.n; ++row)
      if (!is_marked(repeats_, row)) kept_.push_back(static_cast<std::uint32_t>(row));
  }

  DistinctPairs found;

 private:
  template <class Make, class Work, class Groups>
  void run(std::size_t items, const Make& make, const Work& work, const Groups& groups_of) {
    std::atomic<bool> too_many{false};
    split(
        items, search_.threads, make,
        [&](auto& worker, std::size_t item, const auto& stopped) {
          work(worker, item, [&] {
            if (groups_of(worker).pairs.size > search_.most) too_many = true;
            return too_many || stopped();
          });
        },
        [&](auto& worker) {
          GroupPairs& groups = groups_of(worker);
          if (found.pairs.size == 0)
            found.pairs = std::move(groups.pairs);
          else
            found.pairs.append(groups.pairs);
          found.equal.insert(found.equal.end(), groups.equal.begin(), groups.equal.end());
        },
        [&] { return too_many || search_.poll(); });
    found.too_many = too_many || found.pairs.size > search_.most;
  }

  const PairRows& rows_;
  const PairSearch& search_;
  Parts parts_;
  bool may_repeat_ = true;             // until the first pass, which sees all equal rows together
  std::vector<std::uint64_t> repeats_;  // rows that equal an earlier one are marked
  std::vector<std::uint32_t> kept_;     // the others; empty if almost all are
};

// Rows by the first of those equal to them.
class Repeats {
 public:
  Repeats(const std::vector<Equal>& equal, std::size_t n)
      : first(equal.size()), row(equal.size()), marks_(marked(equal, n, &Equal::first)) {
    std::vector<std::uint64_t> from(equal.size());
    std::vector<std::uint64_t> to(equal.size());
    for (std::size_t i = 0; i < equal.size(); ++i) {
      from[i] = equal[i].first;
      to[i] = equal[i].row;
    }
    sort_pairs({from.data(), to.data(), equal.size()}, first.data(), row.data());
    for (std::size_t i = 0; i < first.size(); ++i)
      if (i == 0 || first[i - 1] != first[i]) starts_.push_back(i);
    starts_.push_back(first.size());
  }

  std::span<const std::uint64_t> of(std::uint32_t one) const {
    if (!is_marked(marks_, one)) return {};
    const auto start = std::partition_point(starts_.begin(), starts_.end() - 1,
                                            [&](std::size_t at) { return first[at] < one; });
    return std::span(row).subspan(start[0], start[1] - start[0]);
  }

  // Calls group(first, rows) for each of several equal rows.
  template <class Group>
  void each(Group group) const {
    for (std::size_t i = 0; i + 1 < starts_.size(); ++i)
      group(first[starts_[i]], std::span(row).subspan(starts_[i], starts_[i + 1] - starts_[i]));
  }

  std::vector<std::uint64_t> first;  // ascending
  std::vector<std::uint64_t> row;    // ascending where `first` is equal

 private:
  std::vector<std::uint64_t> marks_;
  std::vector<std::size_t> starts_;
};

void sort_few(const FoundPairs& pairs, std::int64_t* a, std::int64_t* b, std::uint16_t* distance) {
  std::vector<std::uint64_t> rows(pairs.size);
  std::vector<std::uint64_t> bits(pairs.size);
  for (std::size_t i = 0; i < pairs.size; ++i) {
    const auto [low, high] = std::minmax(pairs.a[i], pairs.b[i]);
    rows[i] = std::uint64_t{low} << 32 | high;
    bits[i] = pairs.distance[i];
  }
  std::vector<std::uint64_t> sorted_rows(pairs.size);
  std::vector<std::uint64_t> sorted_bits(pairs.size);
  sort_pairs({rows.data(), bits.data(), pairs.size}, sorted_rows.data(), sorted_bits.data());
  for (std::size_t i = 0; i < pairs.size; ++i) {
    a[i] = static_cast<std::int64_t>(sorted_rows[i] >> 32);
    b[i] = static_cast<std::int64_t>(sorted_rows[i] & 0xffffffff);
    distance[i] = static_cast<std::uint16_t>(sorted_bits[i]);
  }
}

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
  const Repeats like(found.equal, n);
  for (std::size_t i = 0; i < found.pairs.size; ++i) {
    const auto a = static_cast<double>(like.of(found.pairs.a[i]).size());
    const auto b = static_cast<double>(like.of(found.pairs.b[i]).size());
    pairs += (a + 1) * (b + 1) - 1;
  }
  if (with_equal)
    like.each([&](std::uint64_t, auto rows) {
      const auto more = static_cast<double>(rows.size());
      pairs += more * (more + 1) / 2;
    });
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
  std::size_t turn = 0;
  bool stopped = false;
  const auto goes_on = [&] { return !(stopped |= turn++ % 1024 == 0 && search.poll()); };
  const auto add = [&](std::uint64_t a, std::uint64_t b, std::uint64_t bits) {
    pairs.push(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), bits);
  };
  for (std::size_t i = 0; i < distinct && goes_on(); ++i) {
    const std::uint32_t a = pairs.a[i];
    const std::uint32_t b = pairs.b[i];
    const std::uint64_t bits = pairs.distance[i];
    const auto like_a = like.of(a);
    for (const std::uint64_t x : like_a) add(x, b, bits);
    for (const std::uint64_t y : like.of(b)) {
      add(a, y, bits);
      for (const std::uint64_t x : like_a) add(x, y, bits);
    }
  }
  if (!with_equal) return;
  like.each([&](std::uint64_t first, auto rows) {
    for (std::size_t i = 0; i < rows.size() && goes_on(); ++i) {
      add(first, rows[i], 0);
      for (std::size_t j = i + 1; j < rows.size(); ++j) add(rows[i], rows[j], 0);
    }
  });
}

void sort_pairs_by_rows(const FoundPairs& pairs, std::size_t n, std::int64_t* a, std::int64_t* b,
                        std::uint16_t* distance) {
  // Beside many rows, a place for each would take longer than the pairs do.
  if (pairs.size < n / 16) return sort_few(pairs, a, b, distance);
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
  const Repeats like(equal, n);
  std::copy(like.first.begin(), like.first.end(), first);
  std::copy(like.row.begin(), like.row.end(), row);
}

}  // namespace simindex
