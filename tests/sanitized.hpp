/// A constant that says if a test runs under a sanitizer.
#pragma once

#include <cstdint>

namespace starling {

/// True in sanitizer builds, which are about 20 times slower. Tests make fewer runs in them,
/// because they look for errors of memory and threads there, and not for wrong distributions.
#ifdef STARLING_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Returns how many of a test's seeds to run: all, or a quarter under a sanitizer.
constexpr std::uint64_t seeds_to_run(std::uint64_t seeds) {
  return sanitized ? (seeds + 3) / 4 : seeds;
}

}  // namespace starling
