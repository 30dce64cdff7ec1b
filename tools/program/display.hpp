/// Shows progress on stderr. On a terminal, show() overwrites its line; elsewhere it prints at most
/// one line a second. Not thread-safe.
#pragma once

#include <chrono>
#include <string>

namespace starling::program {

class Display {
 public:
  /// Writes to stderr, or nowhere if `quiet`.
  explicit Display(bool quiet);
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;
  ~Display() { close(); }

  /// Prints "ACTIVITY ..." before work that may take long.
  void begin(const std::string& activity);
  /// Prints the rest of that line after the work.
  void finish(const std::string& outcome);

  /// Shows a line of progress in place of the one before.
  void show(const std::string& line);
  /// Ends an unfinished line of begin() or show() with a newline.
  void close();

 private:
  bool quiet_;
  bool is_terminal_;
  /// True if the last line on stderr has no newline yet.
  bool is_open_ = false;
  /// If stderr is not a terminal: the earliest time at which show() prints its next line.
  std::chrono::steady_clock::time_point next_line_at_{};
};

}  // namespace starling::program
