#include "bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "cpu.hpp"
#include "features.hpp"
#include "simhash.hpp"

namespace nb = nanobind;

namespace simindex {
namespace {

template <class T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T, std::size_t Dims>
using Output = nb::ndarray<nb::numpy, T, nb::ndim<Dims>>;

constexpr int kMostWords = 64;

template <class T>
Output<T, 1> as_array(std::unique_ptr<T[]> values, std::size_t n) {
  T* const data = values.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Output<T, 1>(data, {n}, owner);
}

template <class T>
Output<T, 2> as_array(std::unique_ptr<T[]> values, std::size_t n, std::size_t columns) {
  T* const data = values.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Output<T, 2>(data, {n, columns}, owner);
}

template <class T>
std::unique_ptr<T[]> copied(const std::vector<T>& values) {
  std::unique_ptr<T[]> copy(new T[values.size()]);
  std::copy(values.begin(), values.end(), copy.get());
  return copy;
}

// Prepared texts, one after the other; offsets are clamped to the data and to each other.
struct Texts {
  std::span<const std::uint8_t> data;
  std::span<const std::int64_t> offsets;

  std::size_t size() const { return offsets.size() - 1; }

  std::span<const std::uint8_t> operator[](std::size_t i) const {
    const auto bytes = static_cast<std::int64_t>(data.size());
    const std::int64_t begin = std::clamp<std::int64_t>(offsets[i], 0, bytes);
    const std::int64_t end = std::clamp<std::int64_t>(offsets[i + 1], begin, bytes);
    return data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }
};

Texts checked_texts(const Input<std::uint8_t>& data, const Input<std::int64_t>& offsets) {
  if (offsets.size() == 0) throw std::invalid_argument("offsets need n + 1 entries");
  return {{data.data(), data.size()}, {offsets.data(), offsets.size()}};
}

std::vector<std::uint8_t> checked_sizes(const Input<std::uint8_t>& sizes, int unit) {
  if (unit != kWord && unit != kChar) throw std::invalid_argument("unit is 0 (word) or 1 (char)");
  std::vector<std::uint8_t> ascending(sizes.data(), sizes.data() + sizes.size());
  std::sort(ascending.begin(), ascending.end());
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
  if (ascending.empty() || ascending.front() == 0) {
    throw std::invalid_argument("sizes need at least one n-gram size, each from 1");
  }
  return ascending;
}

using Simhashes = std::tuple<Output<std::uint64_t, 2>, Output<float, 2>, Output<std::int64_t, 1>>;

Simhashes simhash(Input<std::uint8_t> data, Input<std::int64_t> offsets, int unit,
                  Input<std::uint8_t> sizes, int weighting, Input<std::uint64_t> idf_hashes,
                  Input<std::uint32_t> idf_steps, std::uint32_t unseen_step, int words,
                  std::uint32_t seed, int level) {
  const Texts texts = checked_texts(data, offsets);
  const std::vector<std::uint8_t> ascending = checked_sizes(sizes, unit);
  if (weighting < kBinary || weighting > kTfidf) {
    throw std::invalid_argument("weighting is 0 (binary), 1 (tf) or 2 (tfidf)");
  }
  if (idf_hashes.size() != idf_steps.size()) {
    throw std::invalid_argument("idf_hashes and idf_steps differ in length");
  }
  if (words < 1 || words > kMostWords) throw std::invalid_argument("words are 1 to 64");
  const IdfTable idf{{idf_hashes.data(), idf_hashes.size()},
                     {idf_steps.data(), idf_steps.size()},
                     unseen_step};
  const std::size_t n = texts.size();
  const auto w = static_cast<std::size_t>(words);
  std::unique_ptr<std::uint64_t[]> fingerprints(new std::uint64_t[n * w]);
  std::unique_ptr<float[]> weights_out(new float[n * w * 64]);
  std::unique_ptr<std::int64_t[]> feature_counts(new std::int64_t[n]);
  {
    nb::gil_scoped_release release;
    FeatureTable table;
    Simhash simhash(w, resolve_level(level));
    std::vector<std::uint64_t> weights;
    const double unit_weight = weighting == kTfidf ? 1.0 / (1 << kIdfStepBits) : 1.0;
    for (std::size_t i = 0; i < n; ++i) {
      table.count(texts[i], unit, ascending, seed);
      const std::span<const std::uint64_t> hashes = table.hashes();
      const std::span<const std::uint32_t> counts = table.counts();
      weights.assign(hashes.size(), 1);
      if (weighting != kBinary) std::copy(counts.begin(), counts.end(), weights.begin());
      if (weighting == kTfidf) {
        for (std::size_t f = 0; f < hashes.size(); ++f) weights[f] *= idf.find(hashes[f]);
      }
      simhash.sum(hashes, weights);
      feature_counts[i] = static_cast<std::int64_t>(hashes.size());
      const std::span<const std::int64_t> sums = simhash.sums();
      for (std::size_t word = 0; word < w; ++word) {
        std::uint64_t bits = 0;
        for (std::size_t j = 0; j < 64; ++j) {
          const std::int64_t sum = sums[64 * word + j];
          bits = (bits << 1) | (sum >= 0 ? 1 : 0);  // a tie counts as 1
          weights_out[(i * w + word) * 64 + j] =
              static_cast<float>(static_cast<double>(sum) * unit_weight);
        }
        fingerprints[i * w + word] = bits;
      }
    }
  }
  return {as_array(std::move(fingerprints), n, w), as_array(std::move(weights_out), n, w * 64),
          as_array(std::move(feature_counts), n)};
}

using Features =
    std::tuple<Output<std::uint64_t, 1>, Output<std::uint32_t, 1>, Output<std::int64_t, 1>>;

Features features(Input<std::uint8_t> data, Input<std::int64_t> offsets, int unit,
                  Input<std::uint8_t> sizes, std::uint32_t seed) {
  const Texts texts = checked_texts(data, offsets);
  const std::vector<std::uint8_t> ascending = checked_sizes(sizes, unit);
  const std::size_t n = texts.size();
  std::unique_ptr<std::int64_t[]> feature_offsets(new std::int64_t[n + 1]);
  std::unique_ptr<std::uint64_t[]> hashes_out;
  std::unique_ptr<std::uint32_t[]> counts_out;
  std::size_t found = 0;
  {
    nb::gil_scoped_release release;
    FeatureTable table;
    std::vector<std::uint64_t> hashes;
    std::vector<std::uint32_t> counts;
    feature_offsets[0] = 0;
    for (std::size_t i = 0; i < n; ++i) {
      table.count(texts[i], unit, ascending, seed);
      hashes.insert(hashes.end(), table.hashes().begin(), table.hashes().end());
      counts.insert(counts.end(), table.counts().begin(), table.counts().end());
      feature_offsets[i + 1] = static_cast<std::int64_t>(hashes.size());
    }
    found = hashes.size();
    hashes_out = copied(hashes);
    counts_out = copied(counts);
  }
  return {as_array(std::move(hashes_out), found), as_array(std::move(counts_out), found),
          as_array(std::move(feature_offsets), n + 1)};
}

}  // namespace

void bind_text(nb::module_& m) {
  m.def("simhash", &simhash, nb::arg("data").noconvert(), nb::arg("offsets").noconvert(),
        nb::arg("unit"), nb::arg("sizes").noconvert(), nb::arg("weighting"),
        nb::arg("idf_hashes").noconvert(), nb::arg("idf_steps").noconvert(),
        nb::arg("unseen_step"), nb::arg("words"), nb::arg("seed"), nb::arg("level") = -1);
  m.def("features", &features, nb::arg("data").noconvert(), nb::arg("offsets").noconvert(),
        nb::arg("unit"), nb::arg("sizes").noconvert(), nb::arg("seed"));
}

}  // namespace simindex
