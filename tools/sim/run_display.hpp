/// Shows the progress of many runs on stderr: the share that is done, and the time left. Not
/// thread-safe.
#pragma once

#include <chrono>
#include <string>

#include "starling/tools/program/display.hpp"
#include "starling/tools/sim/runs.hpp"

namespace starling::program {

/// Returns a rate as text, such as "1.12 million updates/s" or "834 updates/s".
[[nodiscard]] std::string rate_text(double updates_per_s);

class RunDisplay {
 public:
  RunDisplay(bool quiet, std::string activity) : display_(quiet), activity_(std::move(activity)) {}

  /// Shows nothing during the first second, because short work needs no progress.
  void show(const OverallProgress& progress);
  /// Shows the progress of work of which `share` is done. The time left assumes a constant rate.
  void show(double share);
  /// Replaces the progress by the number of runs and updates that were simulated, and their speed.
  void finish(const SimRuns& runs);

 private:
  [[nodiscard]] double elapsed_s() const;

  Display display_;
  /// The word for the activity, like "simulating".
  std::string activity_;
  std::chrono::steady_clock::time_point started_at_ = std::chrono::steady_clock::now();
};

}  // namespace starling::program
