#include "bind/gil.hpp"

#include <unistd.h>

#include <atomic>
#include <thread>

namespace simindex {

namespace {

std::atomic<bool> ending{false};
std::thread::id last_thread;      // set before `ending`
std::atomic<int> returning{0};    // threads that ask for the lock, and have not got it

// Either this thread sees that the end has come, or the end sees this thread, and waits for it.
void ask() {
  returning.fetch_add(1);
  if (ending.load() && std::this_thread::get_id() != last_thread) {
    returning.fetch_sub(1);
    for (;;) pause();
  }
}

}  // namespace

ReleasedGil::~ReleasedGil() {
  ask();
  PyEval_RestoreThread(state_);
  returning.fetch_sub(1);
}

TakenGil::TakenGil() {
  ask();
  state_ = PyGILState_Ensure();
  returning.fetch_sub(1);
}

void end_threads() {
  if (ending.load()) return;
  last_thread = std::this_thread::get_id();
  ending.store(true);
  PyThreadState* const state = PyEval_SaveThread();
  while (returning.load() != 0) usleep(50);
  PyEval_RestoreThread(state);
}

}  // namespace simindex
