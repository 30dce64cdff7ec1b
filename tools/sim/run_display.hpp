/// Shows the progress of many runs on stderr: the share that is done, and the time left. One thread
/// at a time.
#pragma once

#include <chrono>
#include <string>

#include "starling/tools/program/display.hpp"
#include "starling/tools/sim/runs.hpp"

namespace starling::program {

/// Returns "1.12 million updates/s", "834 updates/s".
[[nodiscard]] std::string rate_text(double updates_per_s);

class RunDisplay {
 public:
  RunDisplay(bool quiet, std::string activity) : display_(quiet), activity_(std::move(activity)) {}

  /// Shows nothing during the first second, because short work needs no progress.
  void show(const OverallProgress& progress);
  /// Shows the progress of work of which `share` is done. Assumes that it goes on at the same rate.
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
