// A recipe as Python holds it: texts, units or features in; fingerprints, counts and what a text is near
// to out. bind/text.cpp names its methods for Python, and _native.pyi says what they return.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/arriving.hpp"
#include "bind/baton.hpp"
#include "bind/gil.hpp"
#include "bind/text_inputs.hpp"
#include "cpu/levels.hpp"
#include "cpu/workers.hpp"
#include "methods/scan/near.hpp"
#include "simhash/document_counts.hpp"
#include "simhash/features.hpp"
#include "simhash/fingerprinter.hpp"
#include "simhash/idf.hpp"
#include "simhash/sizes.hpp"
#include "simhash/text_facts.hpp"

namespace simindex {

inline constexpr int kMostWords = 64;

inline FeatureChoice choice_of(int unit, bool pairs, const In<std::uint8_t, 1>& sizes,
                        std::uint32_t seed) {
  require(unit == kWord || unit == kChar, "unit is 0 (word) or 1 (char)");
  std::vector<std::uint8_t> ascending(sizes.data(), sizes.data() + sizes.size());
  std::sort(ascending.begin(), ascending.end());
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
  require(!ascending.empty() && ascending.front() != 0,
          "sizes need at least one n-gram size, each from 1");
  return {unit, pairs, std::move(ascending), seed};
}

using Simhashes = std::tuple<Out<std::uint64_t, 2>, Out<float, 2>, Out<std::int64_t, 1>, Invalid>;
using Features = std::tuple<Out<std::uint64_t, 1>, Out<std::uint32_t, 1>, Out<std::int64_t, 1>, Invalid>;
using FirstBad = std::tuple<Invalid>;
using Kept = std::tuple<Out<std::uint32_t, 1>, Out<std::int64_t, 1>, Out<std::uint32_t, 1>,
                        Out<std::int64_t, 1>, Out<std::uint64_t, 1>, bool, Invalid>;
using SplitTexts = std::tuple<Out<std::uint8_t, 1>, Out<std::uint64_t, 1>, Out<std::uint64_t, 1>,
                              Out<std::int64_t, 1>, Invalid>;

// Of a document that comes by itself; as _native.pyi has them.
enum Arrival : int { kNew = 0, kUnsure = 1, kNoFingerprint = 2, kNotUtf8 = 3 };
using NearRows = std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;

// Code units of a text that comes by itself, at most. So what is kept for the next one stays small, and
// no signal waits for long.
inline constexpr std::size_t kMostArriving = std::size_t{1} << 16;

inline std::span<const std::uint8_t> bytes_of(const Text& text) {
  return {static_cast<const std::uint8_t*>(text.data), text.size};
}

// A recipe as the kernels follow it: immutable but for the scratch it keeps, so any number of threads may
// use one.
class TextRecipe {
 public:
  TextRecipe(int unit, bool pairs, In<std::uint8_t, 1> sizes, std::uint32_t seed, int counting,
             bool with_idf, In<std::uint64_t, 2> idf, std::uint32_t unseen,
             In<std::uint32_t, 1> sublinear, int projection, In<std::int16_t, 1> quantiles,
             int words, std::size_t min_features, int level, int sketch_words)
      : idf_(idf), sublinear_(sublinear), quantiles_(quantiles) {
    plan_.features = choice_of(unit, pairs, sizes, seed);
    require(counting >= kOnce && counting <= kBalanced,
            "counting is 0 (once), 1 (tf), 2 (1 + ln tf) or 3 (tf, idf balanced)");
    require(projection >= kSigns && projection <= kTernary,
            "projection is 0 (signs), 1 (gaussian) or 2 (ternary)");
    require(words >= 1 && words <= kMostWords, "words are 1 to 64");
    require(sketch_words >= 0 && sketch_words <= kMostWords, "sketch_words are 0 to 64");
    require(min_features >= 1, "min_features is at least 1");
    require(counting != kSublinear ||
                (sublinear.size() >= 2 &&
                 std::is_sorted(sublinear.data(), sublinear.data() + sublinear.size())),
            "sublinear needs steps of 0 and 1 at least, in ascending order");
    require(projection != kGaussian || quantiles.size() == kQuantiles,
            "a gaussian projection needs 65,536 quantiles");
    const std::size_t buckets = idf.shape(0);
    require(!with_idf || (idf.shape(1) == kBucket && buckets >= 2 && std::has_single_bit(buckets)),
            "idf has the shape (2^k, 8), k at least 1");
    plan_.counting = counting;
    plan_.with_idf = with_idf;
    if (with_idf) plan_.idf = IdfBuckets({idf.data(), kBucket * buckets}, unseen);
    plan_.sublinear = as_span(sublinear_);
    plan_.projection = projection;
    plan_.quantiles = as_span(quantiles_);
    plan_.words = static_cast<std::size_t>(words);
    plan_.sketch_words = static_cast<std::size_t>(sketch_words);
    plan_.min_features = min_features;
    level_ = resolve_level(level);
  }

  Simhashes texts(const nanobind::list& list, std::size_t threads) const {
    const Texts held = texts_of(list);
    return simhash(held.texts, threads);
  }

  Simhashes column(In<std::uint8_t, 1> data, In<std::int64_t, 1> offsets,
                   std::size_t threads) const {
    return simhash(texts_of(data, offsets), threads);
  }

  Simhashes units(In<std::uint8_t, 1> bytes, In<std::uint64_t, 1> starts,
                  In<std::uint64_t, 1> ends, In<std::int64_t, 1> offsets,
                  std::size_t threads) const {
    const std::vector<ReadyUnits> documents = units_of(bytes, starts, ends, offsets);
    return rows(documents.size(), threads,
                [&](Fingerprinter& fingerprinter, std::size_t i, const Row& row, auto& stopped) {
                  fingerprinter.units(documents[i], row, stopped);
                });
  }

  Simhashes hashes(In<std::uint64_t, 1> hashes, In<std::int64_t, 1> offsets,
                   std::size_t threads) const {
    const auto ranges = ranges_of(offsets, hashes.size());
    return rows(ranges.size(), threads,
                [&](Fingerprinter& fingerprinter, std::size_t i, const Row& row, auto& stopped) {
                  const auto [begin, end] = ranges[i];
                  fingerprinter.hashes(as_span(hashes).subspan(begin, end - begin), row, stopped);
                });
  }

  Simhashes given(In<std::uint64_t, 1> hashes, In<double, 1> weights,
                  In<std::int64_t, 1> offsets, std::size_t threads) const {
    require(hashes.size() == weights.size(), "hashes and weights differ in length");
    const auto ranges = ranges_of(offsets, hashes.size());
    return rows(ranges.size(), threads,
                [&](Fingerprinter& fingerprinter, std::size_t i, const Row& row, auto& stopped) {
                  const auto [begin, end] = ranges[i];
                  fingerprinter.given(as_span(hashes).subspan(begin, end - begin),
                                      as_span(weights).subspan(begin, end - begin), row, stopped);
                });
  }

  // Puts a text's row into a free place, or into one apart, and tells which of the first `count` there and
  // of the tables' rows is nearest to it: as _native.pyi has it.
  std::variant<int, NearRows> arrive(nanobind::handle object, const Places& places, std::size_t count,
                                     const Passages& passages, const Places* apart,
                                     Baton* baton) const {
    const Text text = text_of(object);
    const Places& into = apart != nullptr ? *apart : places;
    const std::size_t place = apart != nullptr ? 0 : count;
    require(text.size <= kMostArriving, "text: up to 65,536 code units");
    require(place < into.capacity() && count <= places.capacity(), "count: below the places that there are");
    require(places.words() == plan_.words && into.words() == plan_.words &&
                passages.words() == plan_.words,
            "places and passages: as many words as the recipe");
    require(into.sketch_words() == plan_.sketch_words, "places: sketches as the recipe makes them");
    const HandedGil released(baton);
    // The scratch of a text before, unless other threads have it: to make it anew, with tables that
    // grow as they fill, takes 4 us.
    std::unique_ptr<Scratch> scratch = lend();
    float* const kept = into.weights(place);
    std::int64_t features = 0;
    const Row row{scratch->bits.data(), kept != nullptr ? kept : scratch->weights.data(), &features};
    const Reading reading = scratch->fingerprinter.text(text, row, [] { return false; });
    const std::uint64_t* const bits = scratch->bits.data();
    if (reading == Reading::kDone) {
      std::copy_n(bits, plan_.words, into.row(place));
      if (plan_.sketch_words != 0) {
        std::uint8_t* const sketch = into.sketch(place);
        std::memcpy(sketch, bits + plan_.words, 8 * plan_.sketch_words);
        sketch[8 * plan_.sketch_words] = size_code(static_cast<std::uint64_t>(features));
      }
    }
    give_back(std::move(scratch));
    if (reading != Reading::kDone) return kNotUtf8;
    if (static_cast<std::size_t>(features) < plan_.min_features) return kNoFingerprint;
    return nearest(into.row(place), places, count, passages);
  }

  Features features(const nanobind::list& list) const {
    const Texts texts = texts_of(list);
    std::vector<std::uint64_t> hashes;
    std::vector<std::uint32_t> counts;
    Fresh<std::int64_t> offsets(texts.texts.size() + 1);
    FirstInvalid invalid;
    Signals signals;
    {
      const ReleasedGil release;
      FeatureReader reader(plan_.features, level_);
      FeatureTable table;
      offsets.data()[0] = 0;
      for (std::size_t i = 0; i < texts.texts.size() && !signals(); ++i) {
        table.clear();
        const Reading reading = reader.read(
            texts.texts[i],
            [&](std::span<const std::uint64_t> found) { table.add(found); },
            [&] { return signals(); });
        if (reading == Reading::kInvalid) invalid.report(i, reader.invalid_at());
        hashes.insert(hashes.end(), table.hashes().begin(), table.hashes().end());
        counts.insert(counts.end(), table.counts().begin(), table.counts().end());
        offsets.data()[i + 1] = static_cast<std::int64_t>(hashes.size());
      }
    }
    signals.raise();
    return {copied(hashes), copied(counts), offsets.release(), invalid.found()};
  }

  FirstBad count_in_texts(DocumentTables& tables, const nanobind::list& list,
                          std::size_t threads) const {
    const Texts texts = texts_of(list);
    return count_texts(tables, texts.texts, threads);
  }

  FirstBad count_in_column(DocumentTables& tables, In<std::uint8_t, 1> data,
                           In<std::int64_t, 1> offsets, std::size_t threads) const {
    return count_texts(tables, texts_of(data, offsets), threads);
  }

  FirstBad count_in_units(DocumentTables& tables, In<std::uint8_t, 1> bytes,
                          In<std::uint64_t, 1> starts, In<std::uint64_t, 1> ends,
                          In<std::int64_t, 1> offsets, std::size_t threads) const {
    const std::vector<ReadyUnits> documents = units_of(bytes, starts, ends, offsets);
    count(tables, documents.size(), threads,
          [&](FeatureReader& reader, std::size_t i, auto& sink, auto&) {
            reader.read(documents[i], sink);
          });
    return {Invalid{-1, -1}};
  }

  // As count_in_column, and what each document has: as _native.pyi has it.
  Kept keep_of_column(DocumentTables& tables, In<std::uint8_t, 1> data,
                      In<std::int64_t, 1> offsets, std::size_t threads) const {
    const std::vector<Text> texts = texts_of(data, offsets);
    const std::size_t n = texts.size();
    Fresh<std::int64_t> ends(n + 1);
    Fresh<std::uint32_t> tables_of(n);
    std::vector<KeptHere> all;
    Fresh<std::int64_t> characters(n);
    Fresh<std::uint64_t> ends_of(n);
    const Invalid invalid = counted(tables, texts, threads, &all, [&](std::size_t i) {
      characters.data()[i] = characters_of(bytes_of(texts[i]));
      ends_of.data()[i] = text_ends(bytes_of(texts[i]));
    });
    Fresh<std::uint32_t> entries = [&] {
      const ReleasedGil release;
      return entries_of(all, ends.span(), tables_of.span());
    }();
    const bool whole = std::ranges::all_of(all, [](const KeptHere& some) { return some.whole; });
    return {entries.release(), ends.release(), tables_of.release(), characters.release(),
            ends_of.release(), whole, invalid};
  }

  // Fingerprints of documents whose features were kept.
  Simhashes kept(In<std::uint64_t, 1> hashes, In<std::uint32_t, 1> steps,
                 In<std::int64_t, 1> starts, In<std::uint32_t, 1> entries,
                 In<std::int64_t, 1> offsets, In<std::uint32_t, 1> tables,
                 std::size_t threads) const {
    require(steps.size() == hashes.size(), "hashes and steps differ in length");
    const auto ranges = ranges_of(offsets, entries.size());
    require(tables.size() == ranges.size(), "a table for each document");
    const auto tables_at = ranges_of(starts, hashes.size());
    return rows(
        ranges.size(), threads,
        [&](Fingerprinter& fingerprinter, std::size_t i, const Row& row, auto& stopped) {
          require(tables.data()[i] < tables_at.size(), "a table that is not there");
          const auto [first, last] = tables_at[tables.data()[i]];
          const auto [begin, end] = ranges[i];
          const auto own = as_span(entries).subspan(begin, end - begin);
          for (const std::uint32_t entry : own) {
            require(entry >> kTimesBits < last - first, "a feature that is not in its table");
          }
          fingerprinter.kept({own, as_span(hashes).subspan(first, last - first),
                              as_span(steps).subspan(first, last - first)},
                             row, stopped);
        });
  }

  // The idf of features, in steps; one step without.
  Out<std::uint32_t, 1> steps(In<std::uint64_t, 1> hashes) const {
    Fresh<std::uint32_t> found(hashes.size());
    {
      const ReleasedGil release;
      for (std::size_t i = 0; i < hashes.size(); ++i) {
        found.data()[i] = static_cast<std::uint32_t>(
            plan_.with_idf ? plan_.idf.find(hashes.data()[i]) : kOneStep);
      }
    }
    return found.release();
  }

  SplitTexts split_texts(const nanobind::list& list) const {
    const Texts texts = texts_of(list);
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> starts;
    std::vector<std::uint64_t> ends;
    Fresh<std::int64_t> offsets(texts.texts.size() + 1);
    FirstInvalid invalid;
    Signals signals;
    {
      const ReleasedGil release;
      Units units(plan_.features.unit, plan_.features.pairs, level_);
      offsets.data()[0] = 0;
      for (std::size_t i = 0; i < texts.texts.size() && !signals(); ++i) {
        units.begin(texts.texts[i]);
        for (bool more = true; more && !signals(); units.keep(0)) {
          more = units.read();
          for (std::size_t u = 0; u < units.ends().size(); ++u) {
            if (!bytes.empty()) bytes.push_back(' ');
            starts.push_back(bytes.size());
            bytes.insert(bytes.end(), units.bytes() + units.starts()[u],
                         units.bytes() + units.ends()[u]);
            ends.push_back(bytes.size());
          }
        }
        if (units.invalid_at() != Units::kValid) invalid.report(i, units.invalid_at());
        offsets.data()[i + 1] = static_cast<std::int64_t>(ends.size());
      }
    }
    bytes.resize(bytes.size() + Units::kPadding);
    signals.raise();
    return {copied(bytes), copied(starts), copied(ends), offsets.release(), invalid.found()};
  }

  ~TextRecipe() {
    for (auto& idle : idle_) delete idle.load();
  }

 private:
  struct Scratch {
    Scratch(const RecipePlan& plan, int level)
        : fingerprinter(plan, level), bits(plan.words + plan.sketch_words),
          weights(64 * plan.words) {}

    Fingerprinter fingerprinter;
    std::vector<std::uint64_t> bits;
    std::vector<float> weights;
  };

  std::unique_ptr<Scratch> lend() const {
    for (auto& idle : idle_) {
      if (std::unique_ptr<Scratch> scratch{idle.exchange(nullptr)}) return scratch;
    }
    return std::make_unique<Scratch>(plan_, level_);
  }

  void give_back(std::unique_ptr<Scratch> scratch) const {
    for (auto& idle : idle_) {
      scratch.reset(idle.exchange(scratch.release()));
      if (scratch == nullptr) return;
    }
  }

  // The rows nearest to a query: the first that waits, and one of the tables unless it is farther away.
  std::variant<int, NearRows> nearest(const std::uint64_t* query, const Places& places,
                                      std::size_t count, const Passages& passages) const {
    const auto recent = places.nearest(query, 0, count, passages.h(), level_);
    const Nearest stored =
        passages.nearest(query, recent ? recent->distance : passages.h(), level_);
    if (stored.unsure) return kUnsure;
    if (stored.found) {
      const auto& [table, row, distance] = *stored.found;
      const bool as_near = recent && recent->distance == distance;
      return NearRows{distance, as_near ? static_cast<std::int64_t>(recent->row) : -1, table, row};
    }
    if (recent) return NearRows{recent->distance, recent->row, -1, -1};
    return kNew;
  }

  template <class T>
  static Out<T, 1> copied(const std::vector<T>& values) {
    Fresh<T> copy(values.size());
    std::copy(values.begin(), values.end(), copy.data());
    return copy.release();
  }

  Simhashes simhash(const std::vector<Text>& texts, std::size_t threads) const {
    FirstInvalid invalid;
    auto made = rows(texts.size(), threads,
                     [&](Fingerprinter& fingerprinter, std::size_t i, const Row& row, auto& stopped) {
                       if (invalid.before(i)) return;
                       const Reading reading = fingerprinter.text(texts[i], row, stopped);
                       if (reading == Reading::kInvalid) invalid.report(i, fingerprinter.invalid_at());
                     });
    std::get<3>(made) = invalid.found();
    return made;
  }

  // Calls work(fingerprinter, i, row, stopped) for every document.
  template <class Work>
  Simhashes rows(std::size_t n, std::size_t threads, Work work) const {
    const std::size_t words = plan_.words;
    const std::size_t all_words = words + plan_.sketch_words;
    Fresh<std::uint64_t> bits(n * all_words);
    Fresh<float> weights(n * words * 64);
    Fresh<std::int64_t> features(n);
    Signals signals;
    {
      const ReleasedGil release;
      split(
          n, threads, [this] { return Fingerprinter(plan_, level_); },
          [&](Fingerprinter& fingerprinter, std::size_t i, auto& stopped) {
            work(fingerprinter, i,
                 Row{bits.data() + i * all_words, weights.data() + i * words * 64,
                     features.data() + i},
                 stopped);
          },
          [](const Fingerprinter&) {}, [&signals] { return signals(); });
    }
    signals.raise();
    return {bits.release({n, all_words}), weights.release({n, words * 64}),
            features.release(), {-1, -1}};
  }

  // What a thread keeps of the documents that it counted: a document of the call, and where it ends among
  // the entries of the table. It begins where the one before it ends.
  struct KeptHere {
    const DocumentCounts* table = nullptr;
    bool whole = true;
    std::vector<std::pair<std::size_t, std::size_t>> documents;
  };

  // The entries of all documents, in their order, where those of each end, and in which table they are.
  static Fresh<std::uint32_t> entries_of(const std::vector<KeptHere>& all, std::span<std::int64_t> ends,
                                         std::span<std::uint32_t> tables) {
    std::ranges::fill(ends, 0);
    std::ranges::fill(tables, 0);
    for (const KeptHere& some : all) {
      std::size_t before = 0;
      for (const auto& [document, end] : some.documents) {
        ends[document + 1] = static_cast<std::int64_t>(end - before);
        tables[document] = some.table->number();
        before = end;
      }
    }
    for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    Fresh<std::uint32_t> entries(static_cast<std::size_t>(ends.back()));
    for (const KeptHere& some : all) {
      std::size_t before = 0;
      for (const auto& [document, end] : some.documents) {
        std::copy_n(some.table->kept().data() + before, end - before, entries.data() + ends[document]);
        before = end;
      }
    }
    return entries;
  }

  FirstBad count_texts(DocumentTables& tables, const std::vector<Text>& texts,
                       std::size_t threads) const {
    return {counted(tables, texts, threads, nullptr, [](std::size_t) {})};
  }

  // Calls see(i) for every text that is UTF-8, while it is in a cache.
  template <class See>
  Invalid counted(DocumentTables& tables, const std::vector<Text>& texts, std::size_t threads,
                  std::vector<KeptHere>* kept, See see) const {
    FirstInvalid invalid;
    count(
        tables, texts.size(), threads,
        [&](FeatureReader& reader, std::size_t i, auto& sink, auto& stopped) {
          if (invalid.before(i)) return;
          if (reader.read(texts[i], sink, stopped) == Reading::kInvalid) {
            invalid.report(i, reader.invalid_at());
          } else {
            see(i);
          }
        },
        kept);
    return invalid.found();
  }

  // Calls read(reader, i, sink, stopped) for every document. With `kept`, what they have is appended
  // to it, one item a thread.
  template <class Read>
  void count(DocumentTables& tables, std::size_t n, std::size_t threads, Read read,
             std::vector<KeptHere>* kept = nullptr) const {
    require(n <= 0xffffffff, "more than 2^32 - 1 documents");
    Signals signals;
    struct Scratch {
      FeatureReader reader;
      std::unique_ptr<DocumentCounts> counts;
      KeptHere kept;
    };
    {
      const ReleasedGil release;
      split(
          n, threads,
          [&] {
            Scratch scratch{FeatureReader(plan_.features, level_), tables.lend(), {}};
            scratch.counts->keep_anew();
            return scratch;
          },
          [&](Scratch& scratch, std::size_t i, auto& stopped) {
            scratch.counts->begin();
            auto sink = [&](std::span<const std::uint64_t> found) { scratch.counts->add(found); };
            read(scratch.reader, i, sink, stopped);
            scratch.counts->end();
            if (kept == nullptr) return;
            KeptHere& own = scratch.kept;
            own.whole = own.whole && scratch.counts->keep();
            own.documents.emplace_back(i, scratch.counts->kept().size());
          },
          [&](Scratch& scratch) {
            if (kept != nullptr) {
              scratch.kept.table = scratch.counts.get();
              kept->push_back(std::move(scratch.kept));
            }
            tables.give_back(std::move(scratch.counts));
          },
          [&signals] { return signals(); });
    }
    signals.raise();
  }

  In<std::uint64_t, 2> idf_;
  In<std::uint32_t, 1> sublinear_;
  In<std::int16_t, 1> quantiles_;
  RecipePlan plan_;
  int level_ = 0;
  // One for each thread of a pair.
  mutable std::array<std::atomic<Scratch*>, 2> idle_{};
};

}  // namespace simindex
