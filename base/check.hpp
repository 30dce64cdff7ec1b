/// Contracts. They stay on in every build: a broken invariant must never reach a user's parameters.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace starling {

/// Handles a broken condition; must not return.
using CheckHandler = void (*)(const char* condition, const char* file, int line);

namespace detail {

/// This thread's handler; where it is null, a broken condition ends the program.
inline thread_local CheckHandler check_handler = nullptr;

[[noreturn, gnu::cold, gnu::noinline]] inline void broken(const char* condition, const char* file,
                                                          int line) {
  if (check_handler != nullptr) check_handler(condition, file, line);
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace detail

/// Sends this thread's broken conditions to `handler`, which may throw, while the scope lives. For
/// tests and simulations that report how they reached the broken state, and for callers that can
/// end the broken part alone: that part stays broken.
class CheckScope {
 public:
  explicit CheckScope(CheckHandler handler)
      : former_(std::exchange(detail::check_handler, handler)) {}
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;
  ~CheckScope() { detail::check_handler = former_; }

 private:
  CheckHandler former_;
};

}  // namespace starling

/// Ends the program and names the broken condition and its place, unless a CheckScope handles it.
#define STARLING_CHECK(condition)                                 \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::starling::detail::broken(#condition, __FILE__, __LINE__); \
  } while (false)
