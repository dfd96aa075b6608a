// Which of a few threads runs Python, as far as these threads tell each other.
//
//   A   Python ....... drop | kernel ......... | take, Python ....... drop | kernel ...
//   B   kernel ......... | take, Python ...... drop | kernel ......... | take, Python
//
// A thread that asks for the interpreter's lock while another one has it sleeps, and to wake it takes longer
// than the other needs the lock for. So a thread first waits here, awake, for a moment. The baton is advice:
// who was to drop it and does not, as it does other work, loses it after `kMoment`.
//
// The system may wake a second thread on the core of the first one, while the other core sleeps. It gets no time
// there, as the first thread never does, and for hundreds of calls nobody moves it. So who makes `kAlone` calls
// without the other one waits, awake and without the lock, until it is there: the system then moves one of them
// with its next tick.
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
  void drop() {
    last_.store(self(), std::memory_order_relaxed);
    taken_.store(kFree, std::memory_order_release);
  }

  // Before the lock is asked for.
  void take() {
    wait_for_the_other();
    for (;;) {
      std::int64_t taken = taken_.load(std::memory_order_acquire);
      const std::int64_t now = clock();
      const bool waits = taken != kFree && now - taken < kMoment;
      if (!waits && taken_.compare_exchange_weak(taken, now, std::memory_order_acquire)) return;
      if (waits) rest();
    }
  }

  // Once the lock is there, which may have taken longer than a moment.
  void hold() {
    last_.store(self(), std::memory_order_relaxed);
    taken_.store(clock(), std::memory_order_release);
  }

 private:
  // Nanoseconds. A call runs Python for 8 us, with a short loop around it.
  static constexpr std::int64_t kMoment = 50'000;
  static constexpr std::int64_t kFree = INT64_MIN;
  static constexpr int kAlone = 8;
  // Nanoseconds: two ticks of the system and more.
  static constexpr std::int64_t kArrival = 10'000'000;
  // One part in so many of the time is waited for another thread, at most.
  static constexpr std::int64_t kPart = 20;

  void wait_for_the_other() {
    if (last_.load(std::memory_order_relaxed) != self()) {
      alone_.store(0, std::memory_order_relaxed);
      return;
    }
    if (alone_.fetch_add(1, std::memory_order_relaxed) < kAlone) return;
    const std::int64_t began = clock();
    if (began < again_.load(std::memory_order_relaxed)) return;
    std::int64_t now = began;
    while (last_.load(std::memory_order_relaxed) == self() && now - began < kArrival) {
      rest();
      now = clock();
    }
    again_.store(now + kPart * (now - began), std::memory_order_relaxed);
    alone_.store(0, std::memory_order_relaxed);
  }

  // The thread that asks, while it lives.
  static const void* self() {
    static thread_local char here;
    return &here;
  }

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
  std::atomic<const void*> last_{nullptr};  // who had it last
  std::atomic<int> alone_{0};               // calls of that thread without the other
  std::atomic<std::int64_t> again_{0};      // when the other may be waited for
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
