/// Shows the progress of many runs on stderr: the share that is done, and the time left. One
/// thread.
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

  void show(const PieceProgress& done);
  /// Shows the progress of work that goes on at an even rate, of which `share` is done.
  void show(double share);
  /// Shows how many runs and updates were simulated, and how fast.
  void finish(const SimRuns& runs);

 private:
  [[nodiscard]] double elapsed_s() const;

  Display display_;
  /// The activity that is shown, as a participle: "simulating".
  std::string activity_;
  std::chrono::steady_clock::time_point started_at_ = std::chrono::steady_clock::now();
};

}  // namespace starling::program
