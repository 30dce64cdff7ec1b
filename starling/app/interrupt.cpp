#include "starling/app/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>

#include "starling/app/file_output.hpp"

namespace starling::app {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers may use these");
std::atomic<bool> orderly = false;
std::atomic<const char*> announced = nullptr;
std::atomic<const char*> given_up = "\nstarling: interrupted, nothing was saved\n";
std::atomic<bool> asked = false;

/// Behind what stands on the terminal: ^C, and an unfinished line.
void say(std::string_view words) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
}

void on_signal(int signal) {
  if (orderly && !asked.exchange(true)) {
    if (const char* words = announced) say(words);
    return;
  }
  // A terminal that is lost says so more than once: its shell does, and the system.
  if (orderly && signal == SIGHUP) return;
  discard_unfinished();
  say(asked ? "\nstarling: interrupted twice, ended at once\n" : given_up.load());
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

void saves_nothing() noexcept { given_up = "\nstarling: interrupted\n"; }

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

}  // namespace starling::app
