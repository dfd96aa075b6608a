#include "slicelist.hpp"

#include <algorithm>
#include <vector>

#include "memory.hpp"
#include "workers.hpp"

namespace simindex {
namespace {

// The value of one slice in a row.
class Slice {
 public:
  Slice(const SlicedRows& rows, std::size_t slice)
      : words_(rows.words),
        mask_(rows.list_count() - 1),
        shift_(64 - rows.bits - static_cast<int>(slice * static_cast<std::size_t>(rows.bits) % 64)),
        word_(rows.values.data() + slice * static_cast<std::size_t>(rows.bits) / 64) {}

  std::size_t operator()(std::size_t row) const {
    return word_[row * words_] >> shift_ & mask_;
  }

 private:
  std::size_t words_;
  std::uint64_t mask_;
  int shift_;
  const std::uint64_t* word_;
};

// Turns counts into where each begins; returns their sum.
std::uint32_t begin_lists(std::span<std::uint32_t> counts) {
  std::uint32_t begin = 0;
  for (std::uint32_t& count : counts) {
    const std::uint32_t size = count;
    count = begin;
    begin += size;
  }
  return begin;
}

void one_slice(const SlicedRows& rows, std::size_t slice, std::span<std::uint32_t> next,
               std::span<std::uint32_t> starts, std::span<std::uint32_t> numbers) {
  slice_starts(rows, slice, starts);
  std::copy(starts.begin(), starts.end() - 1, next.begin());
  const Slice value(rows, slice);
  for (std::size_t row = 0; row < numbers.size(); ++row)
    numbers[next[value(row)]++] = static_cast<std::uint32_t>(row);
}

}  // namespace

void slice_starts(const SlicedRows& rows, std::size_t slice, std::span<std::uint32_t> starts) {
  std::fill(starts.begin(), starts.end(), 0);
  const Slice value(rows, slice);
  for (std::size_t row = 0; row < rows.size(); ++row) ++starts[value(row)];
  starts.back() = begin_lists(starts.first(rows.list_count()));
}

void slice_part(const SlicedRows& rows, std::size_t slice, std::span<const std::uint32_t> starts,
                std::size_t begin, std::span<std::uint32_t> numbers) {
  std::vector<std::uint32_t> next(starts.begin(), starts.end());
  std::fill(numbers.begin(), numbers.end(), 0);
  const Slice value(rows, slice);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t place = next[value(row)]++;
    if (place - begin < numbers.size()) numbers[place - begin] = static_cast<std::uint32_t>(row);
  }
}

void slice_lists(const SlicedRows& rows, std::size_t first, std::size_t slices, std::size_t threads,
                 std::span<std::uint32_t> starts, std::span<std::uint32_t> numbers) {
  const std::size_t n = rows.size();
  const std::size_t ends = rows.list_count() + 1;
  split(
      slices, threads, [&] { return allocate<std::uint32_t>(rows.list_count()); },
      [&](auto& next, std::size_t slice, auto) {
        one_slice(rows, first + slice, {next.get(), rows.list_count()},
                  starts.subspan(slice * ends, ends), numbers.subspan(slice * n, n));
      },
      [](auto&) {}, [] { return false; });
}

}  // namespace simindex
