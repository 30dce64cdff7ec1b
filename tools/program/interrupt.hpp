/// Handles Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal is lost. The first signal
/// asks a running job to stop in order, the second ends the program at once; all SIGHUPs count as
/// one. Process-wide.
#pragma once

#include <chrono>

namespace starling::program {

/// The exit code of an interrupted program.
inline constexpr int interrupted_code = 130;

/// Installs handlers for these signals, but for SIGHUP only if it is not ignored (as nohup has it).
/// While no GracefulStop exists, a signal ends the program at once: with a message and
/// interrupted_code, and without leaving a temporary file.
void watch_interrupts();

/// For commands that have nothing to save: from here on, the message of a signal that ends the
/// program does not mention saving.
void omit_saving_from_signal_message() noexcept;

/// True once a signal came during an GracefulStop. Any thread.
[[nodiscard]] bool is_interrupted() noexcept;

/// Waits until `then` or for a signal. Returns true if a signal came.
[[nodiscard]] bool wait_for_interrupt_until(std::chrono::steady_clock::time_point then);

/// Messages that a first signal may print: they say what a second signal does.
inline constexpr const char* stop_message_without_saving =
    "\nstarling: stopping; again to end at once without saving\n";
inline constexpr const char* stop_message = "\nstarling: stopping; again to end at once\n";

/// While an object of this class exists, the first signal does not end the program: it makes
/// is_interrupted() true and prints `words`, if there are any, on stderr.
class GracefulStop {
 public:
  /// Requires: `words` live as long as the program, or are null.
  explicit GracefulStop(const char* words) noexcept;
  GracefulStop(const GracefulStop&) = delete;
  GracefulStop& operator=(const GracefulStop&) = delete;
  ~GracefulStop();
};

}  // namespace starling::program
