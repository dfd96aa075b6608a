// The interpreter's lock is given up while a kernel runs, and taken back after it.
//
// A thread that asks for the lock when the interpreter is about to end gets none: up to Python 3.13
// CPython ends that thread by unwinding its stack, and where this meets a function that may not
// throw, such as those a binding is called through, the process aborts. So from `end_threads` on,
// which is called at the exit of the process, threads stay here for ever, as they do in Python 3.14.
#pragma once

#include <Python.h>

namespace simindex {

class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

// The lock for a moment, within a kernel that has given it up.
class TakenGil {
 public:
  TakenGil();
  ~TakenGil() { PyGILState_Release(state_); }
  TakenGil(const TakenGil&) = delete;
  TakenGil& operator=(const TakenGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Lets only the calling thread return from kernels. Called with the lock held.
void end_threads();

}  // namespace simindex
