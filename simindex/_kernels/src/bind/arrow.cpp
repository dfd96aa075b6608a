// Columns as an Arrow stream: the structures of Arrow's C data interface, in a capsule.
//
//   ArrowArrayStream   one batch of rows
//     ArrowSchema      a struct of the columns: name and format of each
//     ArrowArray       a struct of the columns: addresses of the numpy arrays
//
// Each structure shares the ownership of all arrays, because a consumer may take a column out of its
// struct and release it later, on any thread, with or without the GIL.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/bindings.hpp"

namespace simindex {
namespace {

// As Arrow's C data interface lays them down.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

// Addresses of numpy arrays, and the arrays themselves. A column with children has no numbers.
struct Column {
  std::string name;
  std::string format;
  std::int64_t length = 0;
  std::vector<const void*> buffers;  // the first is that of nulls, which there are none of
  std::vector<Column> children;
};

struct Table {
  Column root;
  std::vector<PyObject*> arrays;

  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    if (arrays.empty() || Py_IsInitialized() == 0) return;  // at the end of the process they stay
    const PyGILState_STATE state = PyGILState_Ensure();
    for (PyObject* const array : arrays) Py_DECREF(array);
    PyGILState_Release(state);
  }
};

using Shared = std::shared_ptr<const Table>;

// What a structure points to besides the table.
template <class Structure>
struct Held {
  Shared table;
  std::vector<Structure> children;
  std::vector<Structure*> pointers;
  std::vector<const void*> buffers;
};

template <class Structure>
void release(Structure* made) {
  for (std::int64_t i = 0; i < made->n_children; ++i) {
    Structure* const child = made->children[i];
    if (child->release != nullptr) child->release(child);
  }
  delete static_cast<Held<Structure>*>(made->private_data);
  made->release = nullptr;
}

void fill(ArrowSchema* out, const Shared& table, const Column& column);
void fill(ArrowArray* out, const Shared& table, const Column& column);

// The children of a structure, and its owner.
template <class Structure>
Held<Structure>* hold(Structure* out, const Shared& table, const Column& column) {
  auto held = std::make_unique<Held<Structure>>();
  held->table = table;
  held->children.resize(column.children.size());
  for (Structure& child : held->children) held->pointers.push_back(&child);
  for (std::size_t i = 0; i < column.children.size(); ++i) {
    fill(&held->children[i], table, column.children[i]);
  }
  out->n_children = static_cast<std::int64_t>(held->children.size());
  out->children = held->pointers.data();
  out->release = &release<Structure>;
  out->private_data = held.get();
  return held.release();
}

void fill(ArrowSchema* out, const Shared& table, const Column& column) {
  *out = ArrowSchema{};
  out->format = column.format.c_str();
  out->name = column.name.c_str();
  hold(out, table, column);
}

void fill(ArrowArray* out, const Shared& table, const Column& column) {
  *out = ArrowArray{};
  out->length = column.length;
  Held<ArrowArray>* const held = hold(out, table, column);
  held->buffers = column.buffers;
  out->n_buffers = static_cast<std::int64_t>(held->buffers.size());
  out->buffers = held->buffers.data();
}

struct Source {
  Shared table;
  bool given = false;
};

Source& source_of(ArrowArrayStream* stream) { return *static_cast<Source*>(stream->private_data); }

// No exception passes through the C of a consumer.
template <class Structure>
int given(const Shared& table, Structure* out) {
  try {
    fill(out, table, table->root);
    return 0;
  } catch (const std::bad_alloc&) {
    out->release = nullptr;
    return ENOMEM;
  }
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return given(source_of(stream).table, out);
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  Source& source = source_of(stream);
  out->release = nullptr;
  return std::exchange(source.given, true) ? 0 : given(source.table, out);
}

const char* get_last_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
  delete &source_of(stream);
  stream->release = nullptr;
}

constexpr const char* kCapsule = "arrow_array_stream";

void destroy(PyObject* capsule) {
  auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

}  // namespace

// A column is given as its name, its format, how many numbers a row has (0 where they are no list),
// and the arrays of its buffers.
void bind_arrow(nanobind::module_& m) {
  m.def(
      "arrow_stream",
      [](std::int64_t rows, const nanobind::list& columns) {
        auto table = std::make_shared<Table>();
        table->root.format = "+s";
        table->root.length = rows;
        table->root.buffers = {nullptr};
        for (const nanobind::handle given : columns) {
          const auto part = nanobind::cast<nanobind::tuple>(given);
          Column column;
          column.name = nanobind::cast<std::string>(part[0]);
          column.format = nanobind::cast<std::string>(part[1]);
          const auto width = nanobind::cast<std::int64_t>(part[2]);
          column.length = width == 0 ? rows : rows * width;
          column.buffers = {nullptr};
          for (const nanobind::handle one : nanobind::cast<nanobind::tuple>(part[3])) {
            const auto array = nanobind::cast<
                nanobind::ndarray<nanobind::ro, nanobind::ndim<1>, nanobind::c_contig,
                                  nanobind::device::cpu>>(one);
            // Of numbers, or of the places where keys begin and the last one ends; their bytes follow.
            const bool keys = column.format == "U" || column.format == "Z";
            const std::int64_t values = column.length + (keys ? 1 : 0);
            require(column.buffers.size() > 1 || static_cast<std::int64_t>(array.shape(0)) == values,
                    "a column must have as many values as the table has rows");
            column.buffers.push_back(array.data());
            table->arrays.push_back(one.inc_ref().ptr());
          }
          if (width != 0) {
            Column list;
            list.name = std::exchange(column.name, "item");
            list.format = "+w:" + std::to_string(width);
            list.length = rows;
            list.buffers = {nullptr};
            list.children.push_back(std::move(column));
            column = std::move(list);
          }
          table->root.children.push_back(std::move(column));
        }
        auto source = std::make_unique<Source>(Source{table});
        auto stream = std::make_unique<ArrowArrayStream>(ArrowArrayStream{
            &get_schema, &get_next, &get_last_error, &release_stream, source.get()});
        PyObject* const capsule = PyCapsule_New(stream.get(), kCapsule, &destroy);
        if (capsule == nullptr) throw nanobind::python_error();
        source.release();
        stream.release();
        return nanobind::steal<nanobind::object>(capsule);
      },
      nanobind::arg("rows"), nanobind::arg("columns"));
}

}  // namespace simindex
