/// STARLING_CHECK tests invariants in every build, because a broken invariant must never reach a
/// user's parameters.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace starling {

/// A function that STARLING_CHECK calls when its condition is false. It must not return.
using CheckHandler = void (*)(const char* condition, const char* file, int line);

namespace detail {

/// This thread's handler. If it is null, a broken invariant ends the program.
inline thread_local CheckHandler check_handler = nullptr;

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_check(const char* condition,
                                                              const char* file, int line) {
  if (check_handler != nullptr) check_handler(condition, file, line);
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace detail

/// While a CheckScope lives, a STARLING_CHECK that fails in its thread calls `handler`, which may
/// throw. Tests and simulations use it to report how they reached the broken state; other callers
/// use it to end only the broken part of the program, which they must not use again.
class CheckScope {
 public:
  explicit CheckScope(CheckHandler handler)
      : previous_handler_(std::exchange(detail::check_handler, handler)) {}
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;
  ~CheckScope() { detail::check_handler = previous_handler_; }

 private:
  CheckHandler previous_handler_;
};

}  // namespace starling

/// If `condition` is false, prints it with its file and line and ends the program, unless a
/// CheckScope handles it.
#define STARLING_CHECK(condition)                                     \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::starling::detail::fail_check(#condition, __FILE__, __LINE__); \
  } while (false)
