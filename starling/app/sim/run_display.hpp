/// How far many simulated runs are, on stderr: the share, and how long it goes on. One thread.
#pragma once

#include <chrono>
#include <string>

#include "starling/app/display.hpp"
#include "starling/app/sim/runs.hpp"

namespace starling::app {

class RunDisplay {
 public:
  RunDisplay(bool quiet, std::string what) : display_(quiet), what_(std::move(what)) {}

  void show(double share);
  /// What was simulated, and how fast: the only place where that is said.
  void finish(const SimRuns& runs);

 private:
  [[nodiscard]] double elapsed() const;

  Display display_;
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace starling::app
