/// Contracts. They stay on in every build: a broken invariant must never reach a user's parameters.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace starling {

/// What becomes of a broken condition; must not return.
using CheckHandler = void (*)(const char* condition, const char* file, int line);

namespace detail {

/// Of this thread; absent: the program ends.
inline thread_local CheckHandler check_handler = nullptr;

[[noreturn, gnu::cold, gnu::noinline]] inline void broken(const char* condition, const char* file,
                                                          int line) {
  if (check_handler != nullptr) check_handler(condition, file, line);
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace detail

/// As long as it lives, broken conditions of this thread go to `handler`, which may throw. For
/// tests and simulations that want to say how they came there, and for who can end what was broken
/// alone: it stays broken.
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

/// Ends the program, naming the broken condition and the place; or as CheckScope says.
#define STARLING_CHECK(condition)                                 \
  do {                                                            \
    if (!(condition)) [[unlikely]]                                \
      ::starling::detail::broken(#condition, __FILE__, __LINE__); \
  } while (false)
