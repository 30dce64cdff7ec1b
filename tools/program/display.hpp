/// Messages while the program works. While a job runs: on a terminal one line that is rewritten,
/// elsewhere a line about every second. One thread at a time.
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
  /// Ends the line that stands on the terminal.
  ~Display() { close(); }

  /// Print a line in two parts, before and after work that may take long.
  void begin(const std::string& what);
  void finish(const std::string& outcome);

  void show(const std::string& line);
  void close();

 private:
  bool quiet_;
  bool is_terminal_;
  bool is_open_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace starling::program
