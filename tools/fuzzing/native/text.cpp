// Arbitrary bytes as text in every encoding, by recipes whose tables are arbitrary: all levels agree, and
// so do features that were kept when they were counted.
#include <bit>
#include <vector>

#include "input.hpp"
#include "simhash/document_counts.hpp"
#include "simhash/fingerprinter.hpp"

using namespace simindex;
using namespace simindex::fuzzing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  RecipePlan plan;
  plan.features.unit = static_cast<int>(in.in(0, 1));
  plan.features.pairs = in.one_in(2);
  for (std::size_t n = in.in(1, 3), last = 0; n > 0; --n)
    plan.features.sizes.push_back(static_cast<std::uint8_t>(last += in.in(1, 3)));
  plan.features.seed = in.byte();
  plan.counting = static_cast<int>(in.in(0, 3));
  plan.words = in.one_in(4) ? in.in(1, 8) : 1;
  plan.sketch_words = in.one_in(3) ? in.in(1, 8) : 0;
  plan.min_features = in.in(1, 4);
  Array<std::uint32_t> sublinear(in.in(2, 6));  // ascending, of 0 and 1 at least, as the binding has them
  for (std::uint32_t i = 0, last = 0; i < sublinear.size; ++i) sublinear[i] = last += in.raw<std::uint16_t>();
  plan.sublinear = sublinear;
  plan.projection = in.one_in(2) ? kTernary : kSigns;
  const Array<std::uint64_t> buckets = in.words(kBucket << in.in(1, 3));
  Array<std::uint64_t> steps(buckets.size);
  for (std::size_t i = 0; i < steps.size; ++i)  // hashes of a bucket are distinct, as filled ones are
    steps[i] = i % kBucket < kPlaces ? (buckets.data[i] & ~std::uint64_t{3}) | i % kPlaces
                                     : buckets.data[i] & 0x3ffff;
  plan.with_idf = in.one_in(4);
  plan.idf = IdfBuckets(steps, kOneStep);

  const Encoding encoding = static_cast<Encoding>(in.in(0, 3));
  const std::size_t unit = encoding == Encoding::kUcs4 ? 4 : encoding == Encoding::kUcs2 ? 2 : 1;
  const std::size_t repeated = in.one_in(8) ? in.in(1, 40) : 1;
  const std::size_t given = in.left() / unit;
  Array<std::uint8_t> text(given * repeated * unit);
  for (std::size_t i = 0; i < given * unit; ++i) text[i] = in.byte();
  if (encoding == Encoding::kUcs4)
    for (std::size_t i = 3; i < given * unit; i += 4) text[i] = 0, text[i - 1] %= 17;
  for (std::size_t i = given * unit; i < text.size; ++i) text[i] = text[i - given * unit];

  const auto never = [] { return false; };
  Array<std::uint64_t> first(plan.words + plan.sketch_words), other(first.size);
  Array<float> weights(64 * plan.words), other_weights(64 * plan.words);
  std::int64_t features = 0, other_features = 0;
  Fingerprinter portable(plan, 0);
  const Text whole{text.data, given * repeated, encoding};
  const Reading reading = portable.text(whole, {first.data, weights.data, &features}, never);
  REQUIRE(reading == Reading::kDone || encoding == Encoding::kUtf8);
  REQUIRE(reading != Reading::kInvalid || portable.invalid_at() < text.size);
  for (int level = 1; level <= widest_level(); ++level) {
    Fingerprinter wide(plan, level);
    REQUIRE(wide.text(whole, {other.data, other_weights.data, &other_features}, never) == reading);
    if (reading != Reading::kDone) {
      REQUIRE(wide.invalid_at() == portable.invalid_at());
      continue;
    }
    REQUIRE(other_features == features);
    REQUIRE(std::equal(first.data, first.data + first.size, other.data));
    REQUIRE(std::equal(weights.data, weights.data + weights.size, other_weights.data));
  }
  if (reading != Reading::kDone) return 0;
  DocumentCounts counts;
  FeatureReader reader(plan.features, widest_level());
  for (int again = 0; again < 2; ++again) {  // by a table that has the features of the document before
    counts.begin();
    counts.keep_anew();
    reader.read(whole, [&](std::span<const std::uint64_t> hashes) { counts.add(hashes); }, never);
    counts.end();
    REQUIRE(counts.keep());
    std::vector<std::uint32_t> idf(counts.features().size(), kOneStep);
    for (std::size_t i = 0; plan.with_idf && i < idf.size(); ++i)
      idf[i] = static_cast<std::uint32_t>(plan.idf.find(counts.features()[i]));
    Fingerprinter(plan, widest_level())
        .kept({counts.kept(), counts.features(), idf}, {other.data, other_weights.data, &other_features},
              never);
    REQUIRE(std::equal(first.data, first.data + first.size, other.data));
    REQUIRE(std::equal(weights.data, weights.data + weights.size, other_weights.data));
  }
  return 0;
}
