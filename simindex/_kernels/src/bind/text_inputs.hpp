// What the text bindings are given, as the kernels take it: texts of a list or of a column, units,
// ranges of features; and how signals and bytes that are not UTF-8 come back.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "simhash/features.hpp"

namespace simindex {

// Asks Python for signals at most every 50 ms. Used on the calling thread only, without the GIL.
class Signals {
 public:
  bool operator()() {
    if (raised_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + std::chrono::milliseconds(50);
    const TakenGil taken;
    raised_ = PyErr_CheckSignals() != 0;
    return raised_;
  }

  // Raises what a signal handler raised. Needs the GIL.
  void raise() const {
    if (raised_) throw nanobind::python_error();
  }

 private:
  bool raised_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

// Texts of a list, held so that nobody can take them away while the GIL is released.
struct Texts {
  nanobind::tuple held;
  std::vector<Text> texts;
};

inline Text text_of(nanobind::handle item) {
  PyObject* const object = item.ptr();
  if (PyBytes_Check(object)) {
    return {PyBytes_AS_STRING(object), static_cast<std::size_t>(PyBytes_GET_SIZE(object)),
            Encoding::kUtf8};
  }
  if (!PyUnicode_Check(object)) throw nanobind::type_error("texts are str or bytes");
#if PY_VERSION_HEX < 0x030c0000
  if (PyUnicode_READY(object) != 0) throw nanobind::python_error();
#endif
  const int kind = PyUnicode_KIND(object);
  const Encoding encoding = kind == PyUnicode_1BYTE_KIND   ? Encoding::kLatin1
                            : kind == PyUnicode_2BYTE_KIND ? Encoding::kUcs2
                                                           : Encoding::kUcs4;
  return {PyUnicode_DATA(object), static_cast<std::size_t>(PyUnicode_GET_LENGTH(object)), encoding};
}

inline Texts texts_of(const nanobind::list& list) {
  Texts texts{nanobind::tuple(list), {}};
  texts.texts.reserve(texts.held.size());
  for (const nanobind::handle item : texts.held) texts.texts.push_back(text_of(item));
  return texts;
}

// UTF-8 texts one after the other: text i is data[offsets[i]:offsets[i + 1]], clamped to the data.
inline std::vector<Text> texts_of(const In<std::uint8_t, 1>& data, const In<std::int64_t, 1>& offsets) {
  require(offsets.size() != 0, "offsets need n + 1 entries");
  const auto bytes = static_cast<std::int64_t>(data.size());
  std::vector<Text> texts(offsets.size() - 1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::int64_t begin = std::clamp<std::int64_t>(offsets.data()[i], 0, bytes);
    const std::int64_t end = std::clamp<std::int64_t>(offsets.data()[i + 1], begin, bytes);
    texts[i] = {data.data() + begin, static_cast<std::size_t>(end - begin), Encoding::kUtf8};
  }
  return texts;
}

// Ranges of rows by document, clamped: document i has rows offsets[i] .. offsets[i + 1] - 1.
inline std::vector<std::pair<std::size_t, std::size_t>> ranges_of(const In<std::int64_t, 1>& offsets,
                                                           std::size_t rows) {
  require(offsets.size() != 0, "offsets need n + 1 entries");
  const auto most = static_cast<std::int64_t>(rows);
  std::vector<std::pair<std::size_t, std::size_t>> ranges(offsets.size() - 1);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::int64_t begin = std::clamp<std::int64_t>(offsets.data()[i], 0, most);
    const std::int64_t end = std::clamp<std::int64_t>(offsets.data()[i + 1], begin, most);
    ranges[i] = {static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
  }
  return ranges;
}

// Units that were found elsewhere, by document; refused unless they ascend within the bytes.
inline std::vector<ReadyUnits> units_of(const In<std::uint8_t, 1>& bytes,
                                 const In<std::uint64_t, 1>& starts,
                                 const In<std::uint64_t, 1>& ends,
                                 const In<std::int64_t, 1>& offsets) {
  require(starts.size() == ends.size(), "starts and ends differ in length");
  require(bytes.size() >= Units::kPadding, "bytes need 64 more behind the last unit");
  const std::uint64_t most = bytes.size() - Units::kPadding;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::uint64_t start = starts.data()[i];
    const std::uint64_t end = ends.data()[i];
    require(before <= start && start <= end && end <= most, "units are out of order or of bounds");
    before = end;
  }
  std::vector<ReadyUnits> documents;
  for (const auto& [begin, end] : ranges_of(offsets, ends.size())) {
    documents.push_back({bytes.data(), as_span(starts).subspan(begin, end - begin),
                         as_span(ends).subspan(begin, end - begin)});
  }
  return documents;
}

// The first text, in order, that is not UTF-8: (position, byte offset), or (-1, -1).
using Invalid = std::tuple<std::int64_t, std::int64_t>;

class FirstInvalid {
 public:
  bool before(std::size_t i) const { return i > position_.load(std::memory_order_relaxed); }

  void report(std::size_t i, std::size_t offset) {
    const std::lock_guard lock(mutex_);
    if (i >= position_) return;
    position_ = i;
    offset_ = offset;
  }

  Invalid found() const {
    if (position_ == Units::kValid) return {-1, -1};
    return {static_cast<std::int64_t>(position_.load()), static_cast<std::int64_t>(offset_)};
  }

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> position_{Units::kValid};
  std::size_t offset_ = 0;
};

}  // namespace simindex
