// Memory that grows and keeps what it holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "cpu/memory.hpp"

namespace simindex {

// From malloc: a call that needs little of it gets what the call before gave back, without page faults.
template <class T>
class Growing {
 public:
  void reserve(std::size_t size) {
    if (size > size_) [[unlikely]]
      grow(size);
  }
  T* data() { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }

 private:
  [[gnu::noinline]] void grow(std::size_t size) {
    size = std::max(size, size_ + size_ / 2);
    void* moved = std::realloc(data_.get(), size * sizeof(T));
    if (moved == nullptr) throw std::bad_alloc();
    (void)data_.release();
    data_.reset(static_cast<T*>(moved));
    size_ = size;
  }

  Memory<T> data_;
  std::size_t size_ = 0;
};

}  // namespace simindex
