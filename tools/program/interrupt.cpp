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
              "signal handlers may use these");
std::atomic<bool> is_graceful = false;
std::atomic<const char*> first_signal_notice = nullptr;
std::atomic<const char*> abort_notice = "\nstarling: interrupted, nothing was saved\n";
std::atomic<bool> stop_requested = false;
/// When the first signal came, in ms of the monotonic clock. The far future before: a second signal
/// may come before the handler of the first has set it.
std::atomic<std::int64_t> stop_requested_at_ms = INT64_MAX / 2;

/// Writes to stderr. Safe in a signal handler.
void write_error(std::string_view words) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
}

std::int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// Returns whether a signal only repeats the first one. When a terminal is lost, both its shell and
/// the system send SIGHUP; supervisors such as timeout(1) send SIGTERM to a process and then to its
/// group.
bool repeats_first_signal(int signal) {
  constexpr std::int64_t repeated_within_ms = 1000;
  return signal == SIGHUP ||
         (signal == SIGTERM && milliseconds_now() < stop_requested_at_ms + repeated_within_ms);
}

void on_signal(int signal) {
  if (is_graceful && !stop_requested.exchange(true)) {
    stop_requested_at_ms = milliseconds_now();
    if (const char* words = first_signal_notice) write_error(words);
    return;
  }
  if (is_graceful && repeats_first_signal(signal)) return;
  discard_unfinished();
  write_error(stop_requested ? "\nstarling: interrupted twice, ended at once\n"
                             : abort_notice.load());
  ::_exit(interrupted_code);
}

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
}

void omit_saving_from_signal_message() noexcept { abort_notice = "\nstarling: interrupted\n"; }

bool is_interrupted() noexcept { return stop_requested; }

bool wait_for_interrupt_until(std::chrono::steady_clock::time_point then) {
  while (!is_interrupted() && std::chrono::steady_clock::now() < then)
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  return is_interrupted();
}

GracefulStop::GracefulStop(const char* words) noexcept {
  first_signal_notice = words;
  is_graceful = true;
}
GracefulStop::~GracefulStop() { is_graceful = false; }

}  // namespace starling::program
