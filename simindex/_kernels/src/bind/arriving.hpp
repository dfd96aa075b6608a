// What a document that comes by itself is compared with, and where it goes: checked once, for many of them.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/checked.hpp"
#include "bind/permuted.hpp"
#include "cpu/levels.hpp"
#include "methods/scan/near.hpp"

namespace simindex {

// The tables of a snapshot, each with the way that a plan takes through it.
class Passages {
 public:
  Passages(std::size_t words, int h) : words_(words), h_(static_cast<std::uint64_t>(h)) {
    require(h >= 0, "h: 0 or more");
    require(1 <= words && words <= kMaxWords, "words: from 1 to 1023");
  }

  void scan(In<std::uint64_t, 2> rows, Verified* verified) {
    check_rows(rows);
    require_within(verified, rows.data(), rows.nbytes());
    add({Way::kScan, {rows.data(), rows.shape(0), rows.shape(1), nullptr, 0, 0, verified}, {}, {}});
    arrays_.push_back(std::move(rows));
  }

  void probe(nanobind::handle table, int header_bits, In<std::uint64_t, 1> flips) {
    const auto& checked = nanobind::cast<const CheckedTable&>(table);
    add({Way::kProbe, checked.table(header_bits), as_span(flips), {}});
    held_.push_back(nanobind::borrow(table));
    flips_.push_back(std::move(flips));
  }

  void permuted(nanobind::handle table, int header_bits, const nanobind::list& permuted) {
    const auto& checked = nanobind::cast<const CheckedTable&>(table);
    const Table own = checked.table(header_bits);
    add({Way::kPermuted, own, {}, permuted_of(permuted, own)});
    held_.push_back(nanobind::borrow(table));
    held_.push_back(nanobind::tuple(permuted));
  }

  Nearest nearest(const std::uint64_t* query, std::uint64_t h, int level) const {
    return simindex::nearest(passages_, query, h, level);
  }
  std::size_t words() const { return words_; }
  std::uint64_t h() const { return h_; }

 private:
  void add(Passage passage) {
    require(passage.table.words == words_, "rows: of as many words as the passages");
    passages_.push_back(std::move(passage));
  }

  std::size_t words_;
  std::uint64_t h_;
  std::vector<Passage> passages_;
  std::vector<In<std::uint64_t, 2>> arrays_;
  std::vector<In<std::uint64_t, 1>> flips_;
  std::vector<nanobind::object> held_;
};

// Columns with room for rows that come one at a time.
class Places {
 public:
  template <class T>
  using Column = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

  Places(Column<std::uint64_t> rows, Column<std::uint8_t> sketches,
         std::optional<Column<float>> weights)
      : rows_(std::move(rows)), sketches_(std::move(sketches)), weights_(std::move(weights)) {
    require(1 <= rows_.shape(1) && rows_.shape(1) <= kMaxWords, "rows: from 1 to 1023 words wide");
    require(aligned(rows_.data(), 8), "rows: needs words aligned to 8 bytes");
    require(sketches_.shape(0) == rows_.shape(0), "sketches: a row for each of the rows");
    require(sketches_.shape(1) == 0 || sketches_.shape(1) % 8 == 1,
            "sketches: words and a byte, or nothing");
    require(!weights_ || (weights_->shape(0) == rows_.shape(0) &&
                          weights_->shape(1) == 64 * rows_.shape(1)),
            "weights: a row for each of the rows, a column for each bit");
    require(!weights_ || aligned(weights_->data(), 4), "weights: needs values aligned to 4 bytes");
  }

  std::size_t capacity() const { return rows_.shape(0); }
  std::size_t words() const { return rows_.shape(1); }
  std::size_t sketch_words() const { return sketches_.shape(1) / 8; }
  std::uint64_t* row(std::size_t place) const { return rows_.data() + place * words(); }
  // Its words, little-endian, and the byte of its size.
  std::uint8_t* sketch(std::size_t place) const {
    return sketches_.data() + place * sketches_.shape(1);
  }
  // The first of the rows from `first` on, up to `count`, that is nearest to a query.
  std::optional<NearRow> nearest(const std::uint64_t* query, std::size_t first, std::size_t count,
                                 std::uint64_t h, int level) const {
    Passage waiting;
    waiting.table.rows = row(first);
    waiting.table.n = count - first;
    waiting.table.words = words();
    return simindex::nearest({&waiting, 1}, query, h, level).found;
  }
  // As _native.pyi has it.
  std::optional<std::pair<std::uint64_t, std::size_t>> take(const Places& apart, std::size_t first,
                                                            std::size_t count,
                                                            const Passages& passages) {
    require(first <= count && count < capacity(), "count: below the places that there are");
    require(apart.capacity() != 0 && apart.words() == words() &&
                apart.sketches_.shape(1) == sketches_.shape(1) &&
                apart.weights_.has_value() == weights_.has_value(),
            "apart: places of the same columns");
    require(passages.words() == words(), "passages: of as many words as the rows");
    std::copy_n(apart.row(0), words(), row(count));
    std::copy_n(apart.sketch(0), sketches_.shape(1), sketch(count));
    if (weights_) std::copy_n(apart.weights(0), 64 * words(), weights(count));
    const auto found = nearest(row(count), first, count, passages.h(), resolve_level(-1));
    if (!found) return std::nullopt;
    return std::pair{found->distance, first + found->row};
  }
  // Null where weights are not kept.
  float* weights(std::size_t place) const {
    return weights_ ? weights_->data() + place * 64 * words() : nullptr;
  }

 private:
  Column<std::uint64_t> rows_;
  Column<std::uint8_t> sketches_;
  std::optional<Column<float>> weights_;
};

}  // namespace simindex
