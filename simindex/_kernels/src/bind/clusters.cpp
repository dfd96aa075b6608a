#include <nanobind/stl/pair.h>

#include <mutex>
#include <utility>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"
#include "bind/gil.hpp"
#include "bind/text_inputs.hpp"
#include "pairs/clusters.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simindex {
namespace {

using U64 = In<std::uint64_t, 1>;
using U32 = In<std::uint32_t, 1>;

// A forest that threads may share.
class SharedForest {
 public:
  explicit SharedForest(std::size_t size) : forest_(checked(size)) {}

  void unite(const U64& a, const U64& b) {
    require(a.shape(0) == b.shape(0), "a and b differ in length");
    ReleasedGil release;
    const std::lock_guard lock(mutex_);
    require(forest_.unite(as_span(a), as_span(b)), "a or b holds a number outside the forest");
  }

  Out<std::uint32_t, 1> labels() {
    Fresh<std::uint32_t> labels(forest_.size());
    {
      ReleasedGil release;
      const std::lock_guard lock(mutex_);
      forest_.labels(labels.span());
    }
    return labels.release();
  }

 private:
  static std::size_t checked(std::size_t size) {
    require(size < std::size_t{1} << 32, "a forest has fewer than 2**32 numbers");
    return size;
  }

  Forest forest_;
  std::mutex mutex_;
};

std::pair<Out<std::uint32_t, 1>, Out<std::uint16_t, 1>> bind_star(
    const U32& first, const U32& document, std::size_t documents, const U32& a, const U32& b,
    const In<std::uint16_t, 1>& distance, const U64& rank) {
  require(first.shape(0) == document.shape(0), "first and document differ in length");
  require(a.shape(0) == b.shape(0) && a.shape(0) == distance.shape(0),
          "a, b and distance differ in length");
  require(documents <= first.shape(0), "there are more documents than rows");
  require(rank.shape(0) == 0 || rank.shape(0) == documents, "rank and documents differ in length");
  Fresh<std::uint32_t> centre(documents);
  Fresh<std::uint16_t> apart(documents);
  Signals signals;
  {
    ReleasedGil release;
    const StarInput input{as_span(first), as_span(document), documents,
                          as_span(a),     as_span(b),        as_span(distance), as_span(rank)};
    require(star(input, centre.span(), apart.span(), [&] { return signals(); }),
            "a row or a document is not there");
  }
  signals.raise();
  return {centre.release(), apart.release()};
}

}  // namespace

void bind_clusters(nb::module_& m) {
  nb::class_<SharedForest>(m, "Forest")
      .def(nb::init<std::size_t>(), "size"_a)
      .def("unite", &SharedForest::unite, "a"_a.noconvert(), "b"_a.noconvert())
      .def("labels", &SharedForest::labels);
  m.def("star", &bind_star, "first"_a.noconvert(), "document"_a.noconvert(), "documents"_a,
        "a"_a.noconvert(), "b"_a.noconvert(), "distance"_a.noconvert(), "rank"_a.noconvert());
}

}  // namespace simindex
