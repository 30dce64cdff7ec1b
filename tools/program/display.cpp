#include "starling/tools/program/display.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace starling::program {
namespace {

std::size_t columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 120;
  return size.ws_col;
}

}  // namespace

Display::Display(bool quiet) : quiet_(quiet), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Display::begin(const std::string& activity) {
  if (quiet_) return;
  std::fprintf(stderr, "%s ...", activity.c_str());
  std::fflush(stderr);
  is_open_ = true;
}

void Display::finish(const std::string& outcome) {
  if (is_open_) std::fprintf(stderr, " %s", outcome.c_str());
  close();
}

void Display::show(const std::string& line) {
  if (quiet_) return;
  if (is_terminal_) {
    std::fprintf(stderr, "\r%s\x1b[K", line.substr(0, columns() - 1).c_str());
    std::fflush(stderr);
    is_open_ = true;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now < next_line_at_) return;
  next_line_at_ = now + std::chrono::milliseconds{950};
  std::fprintf(stderr, "%s\n", line.c_str());
}

void Display::close() {
  if (is_open_) std::fputs("\n", stderr);
  is_open_ = false;
}

}  // namespace starling::program
