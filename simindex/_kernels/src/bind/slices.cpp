#include <nanobind/stl/pair.h>

#include <utility>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "storage/slice_lists.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

using Rows = In<std::uint64_t, 2>;

// No power of two, so that what is sorted by high byte does not all fall into the same sets of a
// cache: 1 M rows of 1024 bits take a tenth less.
constexpr std::int64_t kBlockRows = 64 * (16384 + 320);

SlicedRows checked_rows(const Rows& rows, int slice_bits, std::int64_t first, std::int64_t slices,
                        std::int64_t block_rows) {
  require(slice_bits == 8 || slice_bits == 16, "slice_bits must be 8 or 16");
  require(block_rows >= 1 && block_rows <= 1 << 24, "block_rows must be from 1 to 2**24");
  require(rows.shape(0) < std::size_t{1} << 32, "a row number is an uint32");
  const SlicedRows sliced{{rows.data(), rows.shape(0) * rows.shape(1)},
                          rows.shape(1),
                          slice_bits,
                          static_cast<std::size_t>(block_rows)};
  const auto all = static_cast<std::int64_t>(rows.shape(1) * 64 / static_cast<unsigned>(slice_bits));
  require(first >= 0 && slices >= 0 && slices <= all && first <= all - slices,
          "the rows do not have these slices");
  return sliced;
}

using Lists = std::pair<Out<std::uint32_t, 2>, Out<std::uint32_t, 2>>;

Lists bind_slice_lists(const Rows& rows, int slice_bits, std::int64_t first_slice,
                       std::int64_t slices, std::int64_t threads, std::int64_t block_rows) {
  const SlicedRows sliced = checked_rows(rows, slice_bits, first_slice, slices, block_rows);
  require(threads >= 1, "threads must be at least 1");
  const auto count = static_cast<std::size_t>(slices);
  const std::size_t ends = sliced.list_count() + 1;
  const std::size_t n = rows.shape(0);
  Fresh<std::uint32_t> starts(count * ends);
  Fresh<std::uint32_t> numbers(count * n);
  {
    ReleasedGil release;
    slice_lists(sliced, static_cast<std::size_t>(first_slice), count,
                static_cast<std::size_t>(threads), starts.span(), numbers.span());
  }
  return {starts.release({count, ends}), numbers.release({count, n})};
}

Out<std::uint32_t, 1> bind_slice_starts(const Rows& rows, int slice_bits, std::int64_t slice,
                                        std::int64_t block_rows) {
  const SlicedRows sliced = checked_rows(rows, slice_bits, slice, 1, block_rows);
  Fresh<std::uint32_t> starts(sliced.list_count() + 1);
  {
    ReleasedGil release;
    slice_starts(sliced, static_cast<std::size_t>(slice), starts.span());
  }
  return starts.release();
}

Out<std::uint32_t, 1> bind_slice_part(const Rows& rows, int slice_bits, std::int64_t slice,
                                      const In<std::uint32_t, 1>& starts, std::int64_t begin,
                                      std::int64_t size, std::int64_t block_rows) {
  const SlicedRows sliced = checked_rows(rows, slice_bits, slice, 1, block_rows);
  require(starts.shape(0) == sliced.list_count() + 1, "starts must have 2**slice_bits + 1 values");
  const auto n = static_cast<std::int64_t>(rows.shape(0));
  require(begin >= 0 && size >= 0 && size <= n && begin <= n - size,
          "begin and size must lie within the rows");
  Fresh<std::uint32_t> numbers(static_cast<std::size_t>(size));
  {
    ReleasedGil release;
    slice_part(sliced, static_cast<std::size_t>(slice), as_span(starts),
               static_cast<std::size_t>(begin), numbers.span());
  }
  return numbers.release();
}

// A builder with the rows it reads and the memory it fills.
class Builder {
 public:
  Builder(const Rows& rows, int slice_bits, std::int64_t slices, std::int64_t block_rows)
      : array_(rows),
        rows_(checked_rows(rows, slice_bits, 0, slices, block_rows)),
        most_(static_cast<std::size_t>(slices)),
        // Slices that do not begin with a word may lie in one more.
        builder_(rows_, (most_ * static_cast<std::size_t>(slice_bits) + 126) / 64),
        numbers_(allocate<std::uint32_t>(most_ * rows_.size())) {}

  nb::tuple lists(nb::handle self, std::int64_t first_slice, std::int64_t slices) {
    checked_rows(array_, rows_.bits, first_slice, slices, 1);
    const auto count = static_cast<std::size_t>(slices);
    require(count <= most_, "the builder has no memory for so many slices");
    const std::size_t ends = rows_.list_count() + 1;
    Fresh<std::uint32_t> starts(count * ends);
    {
      ReleasedGil release;
      builder_.lists(static_cast<std::size_t>(first_slice), count, starts.span(),
                     {numbers_.get(), count * rows_.size()});
    }
    const std::size_t shape[] = {count, rows_.size()};
    return nb::make_tuple(starts.release({count, ends}),
                          Out<std::uint32_t, 2>(numbers_.get(), 2, shape, self));
  }

 private:
  Rows array_;
  SlicedRows rows_;
  std::size_t most_;
  SliceBuilder builder_;
  Memory<std::uint32_t> numbers_;
};

}  // namespace

void bind_slices(nb::module_& m) {
  nb::class_<Builder>(m, "SliceBuilder")
      .def(nb::init<const Rows&, int, std::int64_t, std::int64_t>(), "rows"_a.noconvert(),
           "slice_bits"_a, "slices"_a, "block_rows"_a = kBlockRows)
      .def(
          "lists",
          [](nb::handle self, std::int64_t first_slice, std::int64_t slices) {
            return nb::cast<Builder&>(self).lists(self, first_slice, slices);
          },
          "first_slice"_a, "slices"_a);
  m.def("slice_lists", &bind_slice_lists, "rows"_a.noconvert(), "slice_bits"_a, "first_slice"_a,
        "slices"_a, "threads"_a = 1, "block_rows"_a = kBlockRows);
  m.def("slice_starts", &bind_slice_starts, "rows"_a.noconvert(), "slice_bits"_a, "slice"_a,
        "block_rows"_a = kBlockRows);
  m.def("slice_part", &bind_slice_part, "rows"_a.noconvert(), "slice_bits"_a, "slice"_a,
        "starts"_a.noconvert(), "begin"_a, "size"_a, "block_rows"_a = kBlockRows);
}

}  // namespace simindex
