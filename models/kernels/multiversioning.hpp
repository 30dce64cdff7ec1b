/// STARLING_MULTIVERSION compiles a function for several generations of processor (function
/// multiversioning); the loader chooses the fastest version when the program starts. No build flags
/// are needed. For source files only, not for headers.
#pragma once

#include <cstdlib>

/// STARLING_MULTIVERSION precedes a function that is not a template; this function calls templates
/// marked STARLING_INLINE, which do the work. The macro is empty if the compiler or the C library
/// lacks multiversioning, and under sanitizers, because their runtime starts only after the loader
/// has chosen the versions.
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

/// Marks a template that STARLING_MULTIVERSION functions inline.
#define STARLING_INLINE [[gnu::always_inline]] inline
