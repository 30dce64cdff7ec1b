/// Shows progress on stderr. On a terminal, show() rewrites one line; elsewhere it prints a line
/// about every second. One thread at a time.
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
  /// Ends the line on the terminal.
  ~Display() { close(); }

  /// Prints the first part of a line before work that may take long.
  void begin(const std::string& what);
  /// Prints the rest of that line after the work.
  void finish(const std::string& outcome);

  /// Shows how far a job is.
  void show(const std::string& line);
  void close();

 private:
  bool quiet_;
  bool is_terminal_;
  bool is_open_ = false;
  /// Without a terminal: when show() may print its next line.
  std::chrono::steady_clock::time_point next_line_at_{};
};

}  // namespace starling::program
