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
std::atomic<bool> orderly = false;
std::atomic<const char*> announced = nullptr;
std::atomic<const char*> given_up = "\nstarling: interrupted, nothing was saved\n";
std::atomic<bool> asked = false;
/// When the first signal came, in ms of the monotonic clock; the far future until that is noted,
/// for a second signal may come meanwhile.
std::atomic<std::int64_t> asked_at = INT64_MAX / 2;

/// Writes to stderr, behind text on the terminal such as ^C and an unfinished line.
void write_error(std::string_view words) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
}

std::int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// True for a signal that repeats the first: a lost terminal is signalled by its shell and by the
/// system, and supervisors such as timeout(1) signal a process and then its group.
bool is_echo(int signal) {
  constexpr std::int64_t echo_within = 1000;
  return signal == SIGHUP || (signal == SIGTERM && milliseconds_now() < asked_at + echo_within);
}

void on_signal(int signal) {
  if (orderly && !asked.exchange(true)) {
    asked_at = milliseconds_now();
    if (const char* words = announced) write_error(words);
    return;
  }
  if (orderly && is_echo(signal)) return;
  discard_unfinished();
  write_error(asked ? "\nstarling: interrupted twice, ended at once\n" : given_up.load());
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

void say_nothing_of_saving() noexcept { given_up = "\nstarling: interrupted\n"; }

bool is_interrupted() noexcept { return asked; }

bool is_interrupted_before(std::chrono::steady_clock::time_point then) {
  while (!is_interrupted() && std::chrono::steady_clock::now() < then)
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  return is_interrupted();
}

OrderlyStop::OrderlyStop(const char* words) noexcept {
  announced = words;
  orderly = true;
}
OrderlyStop::~OrderlyStop() { orderly = false; }

}  // namespace starling::program
