/// Handles SIGINT (Ctrl-C), SIGTERM, and SIGHUP, which the system sends when the terminal is lost.
/// The first signal asks a running job to stop and save; the second ends the program at once. A
/// SIGHUP never counts as the second, nor does a SIGTERM within 1 s of the first signal, nor a
/// SIGINT within 100 ms of it. Process-wide.
#pragma once

#include <chrono>

namespace starling::program {

/// The exit code of an interrupted program.
inline constexpr int interrupted_code = 130;

/// Installs handlers for these signals; for SIGHUP only if it is not ignored already, as it is
/// under nohup. While no GracefulStop exists, a signal ends the program at once: the handler
/// removes the temporary file that is being written, prints a message, and exits with
/// interrupted_code. SIGXFSZ is ignored: a write beyond a limit of file sizes returns an error.
void install_signal_handlers();

/// For commands that have nothing to save: after this call, the message of a signal that ends the
/// program does not mention saving.
void omit_saving_from_signal_message() noexcept;

/// Returns true once a signal has come while a GracefulStop existed. Thread-safe.
[[nodiscard]] bool is_interrupted() noexcept;

/// Waits until `deadline` or until a signal comes. Returns true if a signal has come.
[[nodiscard]] bool wait_for_interrupt_until(std::chrono::steady_clock::time_point deadline);

/// Messages for GracefulStop: they say what a second signal does.
inline constexpr const char* stop_message_without_saving =
    "\nstarling: stopping; again to end at once without saving\n";
inline constexpr const char* stop_message = "\nstarling: stopping; again to end at once\n";

/// While an object of this class exists, the first signal does not end the program: it makes
/// is_interrupted() true, and the signal handler prints `message` on stderr, unless that is null.
/// From the first such object on, SIGPIPE is ignored: a write to a pipe that nobody reads returns
/// an error.
class GracefulStop {
 public:
  /// Requires: `message` is null or lives as long as the program.
  explicit GracefulStop(const char* message) noexcept;
  GracefulStop(const GracefulStop&) = delete;
  GracefulStop& operator=(const GracefulStop&) = delete;
  ~GracefulStop();
};

}  // namespace starling::program
