/// Contracts. They stay on in every build: a broken invariant must never reach a user's parameters.
#pragma once

#include <cstdio>
#include <cstdlib>

/// Ends the program, naming the broken condition and the place.
#define STARLING_CHECK(condition)                                                            \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
