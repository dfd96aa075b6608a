#include "bind/bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "bind/text_inputs.hpp"
#include "bind/text_recipe.hpp"
#include "simhash/document_counts.hpp"
#include "simhash/dots.hpp"
#include "simhash/idf.hpp"
#include "simhash/text_facts.hpp"
#include "simhash/unicode.hpp"

namespace nb = nanobind;

namespace simindex {
namespace {

using Frequencies = std::tuple<Out<std::uint64_t, 1>, Out<std::uint32_t, 1>>;

std::tuple<Out<std::uint64_t, 1>, Out<std::int64_t, 1>> listed(const DocumentTables& tables) {
  std::vector<std::uint64_t> features;
  std::vector<std::int64_t> starts;
  tables.list(features, starts);
  Fresh<std::uint64_t> hashes(features.size());
  Fresh<std::int64_t> begins(starts.size());
  std::copy(features.begin(), features.end(), hashes.data());
  std::copy(starts.begin(), starts.end(), begins.data());
  return {hashes.release(), begins.release()};
}

// Calls of(bytes) for each text of a column.
template <class T, class Of>
Out<T, 1> of_each(const In<std::uint8_t, 1>& data, const In<std::int64_t, 1>& offsets, Of of) {
  const std::vector<Text> texts = texts_of(data, offsets);
  Fresh<T> found(texts.size());
  {
    const ReleasedGil release;
    for (std::size_t i = 0; i < texts.size(); ++i) found.data()[i] = of(bytes_of(texts[i]));
  }
  return found.release();
}

Out<std::int64_t, 1> bind_characters(In<std::uint8_t, 1> data, In<std::int64_t, 1> offsets) {
  return of_each<std::int64_t>(data, offsets, characters_of);
}

Out<std::uint64_t, 1> bind_text_ends(In<std::uint8_t, 1> data, In<std::int64_t, 1> offsets) {
  return of_each<std::uint64_t>(data, offsets, text_ends);
}

Frequencies taken(DocumentTables& tables) {
  DocumentTables::Counted counted;
  {
    const ReleasedGil release;
    counted = tables.take();
  }
  Fresh<std::uint64_t> hashes(counted.size());
  Fresh<std::uint32_t> documents(counted.size());
  for (std::size_t i = 0; i < counted.size(); ++i) {
    hashes.data()[i] = counted[i].first;
    documents.data()[i] = counted[i].second;
  }
  return {hashes.release(), documents.release()};
}

Out<std::uint64_t, 2> idf_buckets(In<std::uint64_t, 1> hashes, In<std::uint32_t, 1> steps) {
  require(hashes.size() == steps.size(), "hashes and steps differ in length");
  const std::size_t buckets = idf_buckets_of(hashes.size());
  Fresh<std::uint64_t> values(kBucket * buckets);
  {
    const ReleasedGil release;
    std::fill_n(values.data(), kBucket * buckets, 0);
    fill_idf_buckets(as_span(hashes), as_span(steps), values.span());
  }
  return values.release({buckets, kBucket});
}

Out<double, 1> bind_dots(const In<std::int64_t, 1>& features, const In<double, 1>& weights,
                         const In<std::int64_t, 1>& starts, std::size_t width,
                         const In<std::int64_t, 1>& a, const In<std::int64_t, 1>& b) {
  const WeightedTexts texts{as_span(features), as_span(weights), as_span(starts)};
  require(features.size() == weights.size(), "features and weights differ in length");
  require(width <= features.size() && all_below(texts.features, width),
          "features are numbers below width, which has no more than there are");
  require_parts(texts.starts, features.size(), "starts ascend and are within features");
  require(a.size() == b.size(), "a and b differ in length");
  const std::size_t count = texts.starts.size() - 1;
  require(all_below(as_span(a), count) && all_below(as_span(b), count),
          "a and b are numbers of texts");
  Fresh<double> found(a.size());
  {
    const ReleasedGil release;
    std::vector<double> weight_of(width);
    dots(texts, as_span(a), as_span(b), weight_of, found.span());
  }
  return found.release();
}

std::tuple<std::string, std::string> unicode_versions() {
  return {words_version(), folding_version()};
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<DocumentTables>(m, "DocumentTables")
      .def(nb::init<>())
      .def_prop_ro("features", &DocumentTables::features)
      .def("listed", &listed)
      .def("take", &taken);
  nb::class_<TextRecipe>(m, "TextRecipe")
      .def(nb::init<int, bool, In<std::uint8_t, 1>, std::uint32_t, int, bool, In<std::uint64_t, 2>,
                    std::uint32_t, In<std::uint32_t, 1>, int, In<std::int16_t, 1>, int, std::size_t,
                    int, int>(),
           nb::arg("unit"), nb::arg("pairs"), nb::arg("sizes").noconvert(), nb::arg("seed"),
           nb::arg("counting"), nb::arg("with_idf"), nb::arg("idf").noconvert(),
           nb::arg("unseen"), nb::arg("sublinear").noconvert(), nb::arg("projection"),
           nb::arg("quantiles").noconvert(), nb::arg("words"), nb::arg("min_features"),
           nb::arg("level") = -1, nb::arg("sketch_words") = 0)
      .def("texts", &TextRecipe::texts, nb::arg("texts"), nb::arg("threads") = 1)
      .def("column", &TextRecipe::column, nb::arg("data").noconvert(),
           nb::arg("offsets").noconvert(), nb::arg("threads") = 1)
      .def("units", &TextRecipe::units, nb::arg("bytes").noconvert(),
           nb::arg("starts").noconvert(), nb::arg("ends").noconvert(),
           nb::arg("offsets").noconvert(), nb::arg("threads") = 1)
      .def("hashes", &TextRecipe::hashes, nb::arg("hashes").noconvert(),
           nb::arg("offsets").noconvert(), nb::arg("threads") = 1)
      .def("given", &TextRecipe::given, nb::arg("hashes").noconvert(),
           nb::arg("weights").noconvert(), nb::arg("offsets").noconvert(), nb::arg("threads") = 1)
      .def("features", &TextRecipe::features, nb::arg("texts"))
      .def("count_in_texts", &TextRecipe::count_in_texts, nb::arg("tables"), nb::arg("texts"),
           nb::arg("threads") = 1)
      .def("count_in_column", &TextRecipe::count_in_column, nb::arg("tables"),
           nb::arg("data").noconvert(), nb::arg("offsets").noconvert(), nb::arg("threads") = 1)
      .def("count_in_units", &TextRecipe::count_in_units, nb::arg("tables"),
           nb::arg("bytes").noconvert(), nb::arg("starts").noconvert(),
           nb::arg("ends").noconvert(), nb::arg("offsets").noconvert(), nb::arg("threads") = 1)
      .def("keep_of_column", &TextRecipe::keep_of_column, nb::arg("tables"),
           nb::arg("data").noconvert(), nb::arg("offsets").noconvert(), nb::arg("threads") = 1)
      .def("kept", &TextRecipe::kept, nb::arg("hashes").noconvert(), nb::arg("steps").noconvert(),
           nb::arg("starts").noconvert(), nb::arg("entries").noconvert(),
           nb::arg("offsets").noconvert(), nb::arg("tables").noconvert(), nb::arg("threads") = 1)
      .def("steps", &TextRecipe::steps, nb::arg("hashes").noconvert())
      .def("split", &TextRecipe::split_texts, nb::arg("texts"))
      .def("arrive", &TextRecipe::arrive, nb::arg("text"), nb::arg("places"), nb::arg("count"),
           nb::arg("passages"), nb::arg("apart").none() = nb::none(),
           nb::arg("baton").none() = nb::none());
  m.def("idf_buckets", &idf_buckets, nb::arg("hashes").noconvert(), nb::arg("steps").noconvert());
  m.def("characters", &bind_characters, nb::arg("data").noconvert(), nb::arg("offsets").noconvert());
  m.def("text_ends", &bind_text_ends, nb::arg("data").noconvert(), nb::arg("offsets").noconvert());
  m.def("dots", &bind_dots, nb::arg("features").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("starts").noconvert(), nb::arg("width"), nb::arg("a").noconvert(),
        nb::arg("b").noconvert());
  m.def("unicode_versions", &unicode_versions);
}

}  // namespace simindex
