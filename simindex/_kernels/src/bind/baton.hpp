// Which of a few threads runs Python, as far as these threads tell each other.
//
//   A   Python ....... drop | kernel ......... | take, Python ....... drop | kernel ...
//   B   kernel ......... | take, Python ...... drop | kernel ......... | take, Python
//
// A thread that asks for the interpreter's lock while another one has it sleeps, and to wake it takes longer
// than the other needs the lock for. So a thread first waits here, awake, for a moment. The baton is advice:
// who was to drop it and does not, as it does other work, loses it after `kMoment`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "bind/gil.hpp"

namespace simindex {

class Baton {
 public:
  // Once the lock is given up.
  void drop() { taken_.store(kFree, std::memory_order_release); }

  // Before the lock is asked for.
  void take() {
    for (;;) {
      std::int64_t taken = taken_.load(std::memory_order_acquire);
      const std::int64_t now = clock();
      const bool waits = taken != kFree && now - taken < kMoment;
      if (!waits && taken_.compare_exchange_weak(taken, now, std::memory_order_acquire)) return;
      if (waits) rest();
    }
  }

  // Once the lock is there, which may have taken longer than a moment.
  void hold() { taken_.store(clock(), std::memory_order_release); }

 private:
  // Nanoseconds. A call runs Python for 8 us, with a short loop around it.
  static constexpr std::int64_t kMoment = 50'000;
  static constexpr std::int64_t kFree = INT64_MIN;

  static std::int64_t clock() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }

  static void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<std::int64_t> taken_{kFree};  // when
};

// The interpreter's lock given up for a while, with the baton if there is one.
class HandedGil {
 public:
  explicit HandedGil(Baton* baton) : baton_(baton) {
    released_.emplace();
    if (baton_ != nullptr) baton_->drop();
  }
  ~HandedGil() {
    if (baton_ != nullptr) baton_->take();
    released_.reset();
    if (baton_ != nullptr) baton_->hold();
  }
  HandedGil(const HandedGil&) = delete;
  HandedGil& operator=(const HandedGil&) = delete;

 private:
  std::optional<ReleasedGil> released_;
  Baton* baton_;
};

}  // namespace simindex
