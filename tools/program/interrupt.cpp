#include "starling/tools/program/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <thread>

#include "starling/tools/files/file_output.hpp"

namespace starling::program {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may use only lock-free atomics");
/// True while a GracefulStop exists.
std::atomic<bool> is_graceful = false;
/// If a GracefulStop exists at the first signal, the handler prints this. Null: it prints nothing.
std::atomic<const char*> first_signal_message = nullptr;
/// If no GracefulStop exists at the first signal, the handler prints this and ends the program.
std::atomic<const char*> abort_message = "\nstarling: interrupted, nothing was saved\n";
std::atomic<bool> is_stop_requested = false;
/// The time of the first signal, in ms of the monotonic clock. Before the handler sets it, it is a
/// time in the far future: a second signal that comes meanwhile then counts as a repetition of the
/// first one (repeats_first_signal()).
std::atomic<std::int64_t> stop_requested_at_ms = INT64_MAX / 2;

/// Writes to stderr. Safe in a signal handler.
void write_error(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// Returns true if a later signal counts as a repetition of the first one, so that it does not end
/// the program: a SIGHUP at any time, a SIGTERM within 1 s, a SIGINT within 100 ms. When a terminal
/// is lost, both its shell and the system send SIGHUP. Supervisors such as timeout(1) send a
/// signal, SIGTERM by default, to a process and then to its group. Users do not press Ctrl-C twice
/// within 100 ms.
bool repeats_first_signal(int signal) {
  if (signal == SIGHUP) return true;
  const std::int64_t repeated_within_ms = signal == SIGTERM ? 1000 : 100;
  return milliseconds_now() < stop_requested_at_ms + repeated_within_ms;
}

void on_signal(int signal) {
  if (is_graceful && !is_stop_requested.exchange(true)) {
    stop_requested_at_ms = milliseconds_now();
    if (const char* message = first_signal_message) write_error(message);
    return;
  }
  if (is_graceful && repeats_first_signal(signal)) return;
  discard_unfinished();
  write_error(is_stop_requested ? "\nstarling: interrupted twice, ended at once\n"
                                : abort_message.load());
  ::_exit(interrupted_code);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGXFSZ, SIG_IGN);
}

void omit_saving_from_signal_message() noexcept { abort_message = "\nstarling: interrupted\n"; }

bool is_interrupted() noexcept { return is_stop_requested; }

bool wait_for_interrupt_until(std::chrono::steady_clock::time_point deadline) {
  while (!is_interrupted() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  return is_interrupted();
}

GracefulStop::GracefulStop(const char* message) noexcept {
  // Ctrl-C also ends the program that reads the output through a pipe (`| tee log`). The next line
  // of progress would then end this program before it has saved anything.
  ::signal(SIGPIPE, SIG_IGN);
  first_signal_message = message;
  is_graceful = true;
}
GracefulStop::~GracefulStop() { is_graceful = false; }

}  // namespace starling::program
