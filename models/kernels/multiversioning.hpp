/// For source files only, not for headers: STARLING_MULTIVERSION compiles a plain loop for several
/// generations of the processor; the fastest version is chosen when the program is loaded. No build
/// flags are needed.
#pragma once

#include <cstdlib>

/// Stands before a function that is not a template; inlined templates do the work inside. Empty
/// under sanitizers, whose start-up cannot run before the choice is made, and if the compiler or
/// the C library cannot choose.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(STARLING_SANITIZED)
#if defined(__clang__) && __clang_major__ >= 14
#define STARLING_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#elif !defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 12
#define STARLING_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef STARLING_MULTIVERSION
#define STARLING_MULTIVERSION
#endif

/// Marks a loop body that STARLING_MULTIVERSION functions inline.
#define STARLING_INLINE [[gnu::always_inline]] inline
