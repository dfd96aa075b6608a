// Splits documents over threads, and stops early when asked.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace simindex {

// Calls work(scratch, i, stopped) once for every i below n, on the calling thread and threads - 1
// others, each with a scratch of its own from make(), and at the end collect(scratch) for each of
// them, one after the other. `poll()` is called on the calling thread only, now and then; when it
// returns true, or work throws, `stopped()` becomes true everywhere and no further i is begun.
// Rethrows what was thrown first.
template <class Make, class Work, class Collect, class Poll>
void split(std::size_t n, std::size_t threads, Make make, Work work, Collect collect, Poll poll) {
  threads = std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(n, 1));
  const std::size_t chunk = std::clamp<std::size_t>(n / (threads * 64), 1, 64);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::mutex collecting;
  std::condition_variable finished;
  std::size_t running = 0;
  std::exception_ptr thrown;

  const auto run = [&](auto stopped) {
    try {
      auto scratch = make();
      while (!stopped()) {
        const std::size_t begin = next.fetch_add(chunk);
        if (begin >= n) break;
        const std::size_t end = std::min(begin + chunk, n);
        for (std::size_t i = begin; i < end && !stopped(); ++i) work(scratch, i, stopped);
      }
      if (stop) return;
      const std::lock_guard lock(collecting);
      collect(scratch);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
      stop = true;
    }
  };

  std::vector<std::thread> others;
  others.reserve(threads - 1);
  try {
    while (others.size() + 1 < threads) {
      {
        const std::lock_guard lock(mutex);
        ++running;
      }
      others.emplace_back([&] {
        run([&stop] { return stop.load(std::memory_order_relaxed); });
        const std::lock_guard lock(mutex);
        --running;
        finished.notify_one();
      });
    }
  } catch (const std::exception&) {  // no more threads or memory to be had: fewer do it all
    const std::lock_guard lock(mutex);
    --running;
  }
  run([&] {
    if (poll()) stop = true;
    return stop.load(std::memory_order_relaxed);
  });
  {
    std::unique_lock lock(mutex);
    while (running != 0) {
      if (finished.wait_for(lock, std::chrono::milliseconds(20)) == std::cv_status::timeout) {
        lock.unlock();
        if (poll()) stop = true;
        lock.lock();
      }
    }
  }
  for (std::thread& other : others) other.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace simindex
