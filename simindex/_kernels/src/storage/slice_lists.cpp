#include "storage/slice_lists.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "cpu/memory.hpp"
#include "cpu/workers.hpp"

// Four words of the rows are taken at a time, 16 slices of 16 bits or 32 of 8 bits:
//
//   rows      | word 0 | word 1 | ...        a block of them, read once to count, once to fill
//   columns   | slice 0 of all rows of the block | slice 1 | ...
//   sorted    low byte and row, by high byte: what is filled next then lies close together
//   numbers   next[value]++
//
// Invariants: (1) rows come in their order, so each list ascends; (2) `next` of a value runs from
// where its list starts to where the next one does.
//
// 1 M rows of 1024 bits, ns a row and slice (Xeon of 2.5 GHz, one thread): 77 if each slice is read
// from the rows and filled at once, 11 by columns of one word at a time, 8 of four. Turning then is
// 1 of these, counting another.

namespace simindex {
namespace {

constexpr std::size_t kTurnedWords = 4;

// Which numbers of a slice are wanted: all, or those from `begin` on.
struct Wanted {
  std::size_t begin;
  std::span<std::uint32_t> numbers;
};

template <typename Value>
class Slicer {
 public:
  static constexpr int kBits = 8 * sizeof(Value);
  static constexpr std::size_t kTogether = 64 / kBits;
  static constexpr std::size_t kLists = std::size_t{1} << kBits;

  // Of columns of up to `words` words.
  Slicer(const SlicedRows& rows, std::size_t words)
      : rows_(rows),
        block_(std::min(rows.block_rows, rows.size())),
        columns_(allocate<Value>(block_ * kTogether * words)),
        sorted_(allocate<std::uint32_t>(kBits == 8 ? 0 : block_)) {}

  // Turns the words of slices first .. last - 1 into columns and gives each of these slices to
  // work(slice, column, first row), block by block. Rows that are one block and were turned last are
  // not turned again.
  template <class Work>
  void each_block(std::size_t first, std::size_t last, Work work) {
    const std::size_t word = first / kTogether;
    const std::size_t words = (last + kTogether - 1) / kTogether - word;
    for (std::size_t row = 0; row < rows_.size(); row += block_) {
      const std::size_t size = std::min(block_, rows_.size() - row);
      if (size < rows_.size() || turned_ != std::pair(word, words)) turn(word, words, row, size);
      turned_ = {word, words};
      for (std::size_t slice = first; slice < last; ++slice)
        work(slice, std::span<const Value>(column(slice - word * kTogether), size), row);
    }
  }

  static void count(std::span<const Value> column, std::uint32_t* counts) {
    for (const Value value : column) ++counts[value];
  }

  template <bool Whole>
  void fill(std::span<const Value> column, std::size_t first_row, std::uint32_t* next,
            const Wanted& wanted) {
    const auto put = [&](std::size_t value, std::size_t row) {
      const std::size_t place = next[value]++ - wanted.begin;
      if (Whole || place < wanted.numbers.size())
        wanted.numbers[place] = static_cast<std::uint32_t>(row);
    };
    if constexpr (kBits == 8) {
      for (std::size_t i = 0; i < column.size(); ++i) put(column[i], first_row + i);
    } else {
      std::array<std::uint32_t, 257> ends{};
      for (const Value value : column) ++ends[(value >> 8) + 1];
      std::partial_sum(ends.begin(), ends.end(), ends.begin());
      std::uint32_t* const sorted = sorted_.get();
      for (std::size_t i = 0; i < column.size(); ++i)
        sorted[ends[column[i] >> 8]++] = static_cast<std::uint32_t>(i << 8 | (column[i] & 0xFF));
      std::size_t at = 0;
      for (std::size_t high = 0; high < 256; ++high) {
        for (; at < ends[high]; ++at)
          put(high << 8 | (sorted[at] & 0xFF), first_row + (sorted[at] >> 8));
      }
    }
  }

 private:
  Value* column(std::size_t number) { return columns_.get() + number * block_; }

  // Some rows after the other: of each, its words, and each column is written by whole lines.
  void turn(std::size_t word, std::size_t words, std::size_t first_row, std::size_t size) {
    constexpr std::size_t kRows = 64;
    const std::uint64_t* const from = rows_.values.data() + first_row * rows_.words + word;
    for (std::size_t begin = 0; begin < size; begin += kRows) {
      const std::size_t end = std::min(begin + kRows, size);
      for (std::size_t at = 0; at < words; ++at) {
        for (std::size_t row = begin; row < end; ++row) {
          const std::uint64_t value = from[row * rows_.words + at];
          for (std::size_t k = 0; k < kTogether; ++k)
            column(at * kTogether + k)[row] = static_cast<Value>(value >> (64 - kBits * (k + 1)));
        }
      }
    }
  }

  SlicedRows rows_;
  std::size_t block_;
  Memory<Value> columns_;
  Memory<std::uint32_t> sorted_;
  std::pair<std::size_t, std::size_t> turned_;  // first word and how many
};

// Turns counts, of which there are one fewer than starts, into starts.
void begin_lists(std::span<std::uint32_t> starts) {
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), std::uint32_t{0});
}

// Of one width, the memory it takes kept from call to call.
class Lister {
 public:
  virtual ~Lister() = default;
  virtual void make(std::size_t first, std::size_t slices, std::span<std::uint32_t> starts,
                    std::span<std::uint32_t> numbers) = 0;
};

template <typename Value>
class ListerOf : public Lister {
 public:
  ListerOf(const SlicedRows& rows, std::size_t words)
      : rows_(rows.size()), slicer_(rows, words), next_(words * Own::kTogether * Own::kLists) {}

  void make(std::size_t first, std::size_t slices, std::span<std::uint32_t> starts,
            std::span<std::uint32_t> numbers) override {
    constexpr std::size_t kEnds = Own::kLists + 1;
    std::fill_n(starts.begin(), slices * kEnds, 0);
    const auto starts_of = [&](std::size_t slice) {
      return starts.subspan((slice - first) * kEnds, kEnds);
    };
    const auto next_of = [&](std::size_t slice) {
      return next_.data() + (slice - first) * Own::kLists;
    };
    slicer_.each_block(first, first + slices,
                       [&](std::size_t slice, std::span<const Value> column, std::size_t) {
                         Own::count(column, starts_of(slice).data());
                       });
    for (std::size_t slice = first; slice < first + slices; ++slice) {
      begin_lists(starts_of(slice));
      std::copy_n(starts_of(slice).begin(), Own::kLists, next_of(slice));
    }
    slicer_.each_block(
        first, first + slices,
        [&](std::size_t slice, std::span<const Value> column, std::size_t row) {
          slicer_.template fill<true>(column, row, next_of(slice),
                                      {0, numbers.subspan((slice - first) * rows_, rows_)});
        });
  }

 private:
  using Own = Slicer<Value>;
  std::size_t rows_;
  Own slicer_;
  std::vector<std::uint32_t> next_;
};

template <typename Value>
void starts_of(const SlicedRows& rows, std::size_t slice, std::span<std::uint32_t> starts) {
  Slicer<Value> slicer(rows, 1);
  std::fill(starts.begin(), starts.end(), 0);
  slicer.each_block(slice, slice + 1,
                    [&](std::size_t, std::span<const Value> column, std::size_t) {
                      Slicer<Value>::count(column, starts.data());
                    });
  begin_lists(starts);
}

template <typename Value>
void part_of(const SlicedRows& rows, std::size_t slice, std::span<const std::uint32_t> starts,
             const Wanted& wanted) {
  Slicer<Value> slicer(rows, 1);
  std::vector<std::uint32_t> next(starts.begin(), starts.end());
  slicer.each_block(slice, slice + 1,
                    [&](std::size_t, std::span<const Value> column, std::size_t row) {
                      slicer.template fill<false>(column, row, next.data(), wanted);
                    });
}

}  // namespace

struct SliceBuilder::Own {
  std::unique_ptr<Lister> lister;
};

SliceBuilder::SliceBuilder(const SlicedRows& rows, std::size_t words) : own_(new Own) {
  if (rows.bits == 8)
    own_->lister = std::make_unique<ListerOf<std::uint8_t>>(rows, words);
  else
    own_->lister = std::make_unique<ListerOf<std::uint16_t>>(rows, words);
}

SliceBuilder::~SliceBuilder() = default;
SliceBuilder::SliceBuilder(SliceBuilder&&) noexcept = default;

void SliceBuilder::lists(std::size_t first, std::size_t slices, std::span<std::uint32_t> starts,
                         std::span<std::uint32_t> numbers) {
  if (slices > 0) own_->lister->make(first, slices, starts, numbers);
}

void slice_lists(const SlicedRows& rows, std::size_t first, std::size_t slices, std::size_t threads,
                 std::span<std::uint32_t> starts, std::span<std::uint32_t> numbers) {
  const std::size_t n = rows.size();
  const std::size_t ends = rows.list_count() + 1;
  const std::size_t in_word = 64 / static_cast<std::size_t>(rows.bits);
  const std::size_t first_word = first / in_word;
  const std::size_t words = (first + slices + in_word - 1) / in_word - first_word;
  const std::size_t at_once = std::clamp<std::size_t>(words / threads, 1, kTurnedWords);
  split(
      (words + at_once - 1) / at_once, threads, [&] { return SliceBuilder(rows, at_once); },
      [&](SliceBuilder& builder, std::size_t number, auto) {
        const std::size_t aligned = (first_word + number * at_once) * in_word;
        const std::size_t begin = std::max(first, aligned);
        const std::size_t end = std::min(first + slices, aligned + at_once * in_word);
        builder.lists(begin, end - begin, starts.subspan((begin - first) * ends),
                      numbers.subspan((begin - first) * n));
      },
      [](SliceBuilder&) {}, [] { return false; });
}

void slice_starts(const SlicedRows& rows, std::size_t slice, std::span<std::uint32_t> starts) {
  if (rows.bits == 8)
    starts_of<std::uint8_t>(rows, slice, starts);
  else
    starts_of<std::uint16_t>(rows, slice, starts);
}

void slice_part(const SlicedRows& rows, std::size_t slice, std::span<const std::uint32_t> starts,
                std::size_t begin, std::span<std::uint32_t> numbers) {
  std::fill(numbers.begin(), numbers.end(), 0);
  if (rows.bits == 8)
    part_of<std::uint8_t>(rows, slice, starts, {begin, numbers});
  else
    part_of<std::uint16_t>(rows, slice, starts, {begin, numbers});
}

}  // namespace simindex
