#include "pairs/pairs.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "cpu/workers.hpp"
#include "pairs/group.hpp"
#include "pairs/marks.hpp"
#include "pairs/record_parts.hpp"

namespace simindex {
namespace {

// So many rows that equal an earlier one are left where they are: to leave out each pair of theirs that is
// found takes less time than to fetch every row by its number.
constexpr std::size_t kFewRepeats = 1 << 16;

// One thread's share: a part at a time, by the lower digit.
class Worker {
 public:
  Worker(const RecordParts& parts, const Wish& wish, bool may_repeat, int level)
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
    const PairRecord* const records = parts_.records.get() + begin;
    const std::uint32_t mask = (std::uint32_t{1} << parts_.lower_bits) - 1;
    ends_.assign(mask + 1, 0);
    std::uint32_t* const ends = ends_.data();
    for (std::size_t i = 0; i < size; ++i) {
      __builtin_prefetch(records + i + kPairsAhead);
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

  const RecordParts& parts_;
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
    Wish wish(rows_, choice, search_.h);
    if (kept_.empty()) wish.repeats = repeats_;
    const std::size_t n = kept_.empty() ? rows_.n : kept_.size();
    if (n < 2) return;
    parts_.fill(wish, choice, kept_, search_.threads);
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
  RecordParts parts_;
  bool may_repeat_ = true;             // until the first pass, which sees all equal rows together
  std::vector<std::uint64_t> repeats_;  // rows that equal an earlier one are marked
  std::vector<std::uint32_t> kept_;     // the others; empty if almost all are
};

}  // namespace

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

}  // namespace simindex
