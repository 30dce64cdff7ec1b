/// Keeps what the stages of a flow have done, and shows the one that reported last. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/progress.hpp"
#include "starling/tools/program/display.hpp"

namespace starling::program {

/// All stages with the same description; each iteration of a loop runs such a stage again.
struct StageSummary {
  flow::StageDescription description;
  std::uint64_t runs = 0;
  flow::TaskCounts counts;
  /// The time from the start of the first part to the end of the last part, summed over all runs.
  double seconds = 0;
};

class StageLog {
 public:
  explicit StageLog(bool quiet) : display_(quiet) {}

  /// Takes the progress of a stage, as MapReduceOptions::on_progress gives it.
  void update(const flow::StageProgress& progress);
  /// Ends the line of progress.
  void close();

  [[nodiscard]] bool is_empty() const;
  /// Returns the stages in the order of their first run.
  [[nodiscard]] std::vector<StageSummary> summaries() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct StageRun {
    flow::StageDescription description;
    flow::TaskCounts counts;
    Clock::time_point begin;
    Clock::time_point end;
  };

  mutable std::mutex mutex_;
  /// By the numbers of the action and of the stage.
  std::map<std::pair<std::uint64_t, std::uint32_t>, StageRun> runs_;
  /// The stages in the order in which they began.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order_;
  Clock::time_point next_show_at_{};
  Display display_;
};

}  // namespace starling::program
