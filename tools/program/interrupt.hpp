/// Ctrl-C, SIGTERM, and SIGHUP where the terminal is lost. The first asks a running job to stop in
/// order, the second ends the program at once; hang-ups count as one. Process-wide.
#pragma once

#include <chrono>

namespace starling::program {

/// The exit code of an interrupted program.
inline constexpr int interrupted_code = 130;

/// Takes over these signals, but SIGHUP only where it is not ignored (as under nohup). Outside of
/// OrderlyStop they end the program at once, with a message, interrupted_code and no temporary file
/// left behind.
void watch_interrupts();

/// For commands that have nothing to save: the message of a signal that ends the program does not
/// mention saving.
void say_nothing_of_saving() noexcept;

/// True once a signal came during an OrderlyStop. Any thread.
[[nodiscard]] bool is_interrupted() noexcept;

/// Waits until `then`, or for a signal: true where one came.
[[nodiscard]] bool is_interrupted_before(std::chrono::steady_clock::time_point then);

/// The words that a first signal may print about a second one.
inline constexpr const char* stops_without_saving =
    "\nstarling: stopping; again to end at once without saving\n";
inline constexpr const char* stops_plainly = "\nstarling: stopping; again to end at once\n";

/// While an object of this class lives, the first signal only makes is_interrupted() true, and
/// prints `words` on stderr, where there are any.
class OrderlyStop {
 public:
  /// Requires: `words` live as long as the program, or are null.
  explicit OrderlyStop(const char* words) noexcept;
  OrderlyStop(const OrderlyStop&) = delete;
  OrderlyStop& operator=(const OrderlyStop&) = delete;
  ~OrderlyStop();
};

}  // namespace starling::program
