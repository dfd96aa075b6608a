// The x86 intrinsics, where there are any. GCC 12's header marks "any value" operands in a way that
// its own -Wuninitialized then reports; only that header is excused.
#pragma once

#include "cpu.hpp"

#if SIMINDEX_X86
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
