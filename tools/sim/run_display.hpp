/// Shows the progress of many simulated runs on stderr: the done share, and when they end. One
/// thread.
#pragma once

#include <chrono>
#include <string>

#include "starling/tools/program/display.hpp"
#include "starling/tools/sim/runs.hpp"

namespace starling::program {

/// "1.12 million updates/s", "834 updates/s".
[[nodiscard]] std::string rate_text(double updates_per_s);

class RunDisplay {
 public:
  RunDisplay(bool quiet, std::string what) : display_(quiet), what_(std::move(what)) {}

  void show(const PieceProgress& done);
  /// Shows the progress of work that goes on evenly.
  void show(double share);
  /// Says what was simulated, and how fast.
  void finish(const SimRuns& runs);

 private:
  [[nodiscard]] double elapsed() const;

  Display display_;
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace starling::program
