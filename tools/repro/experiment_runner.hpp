/// Runs the settings that the experiments of a report ask for, under every seed. A setting is run
/// only once, even if several experiments ask for it. Not thread-safe; run() uses several threads.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/sim/runs.hpp"

namespace starling::program {

/// A setting of the simulation in the PSP paper: 40 s of virtual time, in which a step takes an
/// exponentially distributed time with a mean of 100 ms.
struct SimulatedSetting {
  std::string barrier;
  std::size_t workers = 1000;
  /// The stragglers, as --straggler takes them; empty for none.
  std::string straggler{};
  std::string recheck = "arrival";

  auto operator<=>(const SimulatedSetting&) const = default;
};

/// Returns the five barriers of the PSP paper's figures.
[[nodiscard]] const std::vector<std::string>& published_five();

/// A run in which a linear model learns.
struct LearningRun {
  std::uint64_t seed = 0;
  /// The normalised error over time in seconds.
  std::vector<PlotPoint> errors{};
};

struct ExperimentOptions {
  /// The first seed, and the number of consecutive seeds.
  std::uint64_t seed = 1;
  std::uint64_t seeds = 20;
  /// The number of runs at the same time.
  std::size_t threads = 1;
  /// True if fewer settings run with less data, to check that everything works.
  bool quick = false;
  /// True if no progress is shown.
  bool quiet = false;
};

/// The runs of one setting in which a model learns.
struct LearningRuns {
  /// True if each run lasts 40 s of virtual time; false if a run ends when its error is half of
  /// ExperimentRunner::error_goal, or at 400 s.
  bool is_full_length = false;
  std::vector<LearningRun> runs{};
};

class ExperimentRunner {
 public:
  explicit ExperimentRunner(const ExperimentOptions& options) : options_(options) {}

  [[nodiscard]] const ExperimentOptions& options() const noexcept { return options_; }

  /// Asks for runs of a setting. Requires: the texts of the setting can be parsed.
  void request(const SimulatedSetting& setting) { runs_[setting]; }
  /// Asks for runs of a setting in which a model learns: for 40 s of virtual time if
  /// `is_full_length`, else until the model's error is half of error_goal, for 400 s at most.
  void request_learning(const SimulatedSetting& setting, bool is_full_length);

  /// Makes all runs that were requested.
  void run();

  /// Return the runs of a setting. Require: the setting was requested, and run() has returned.
  [[nodiscard]] const SimRuns& runs_of(const SimulatedSetting& setting) const {
    return runs_.at(setting);
  }
  [[nodiscard]] const std::vector<LearningRun>& learning_runs_of(
      const SimulatedSetting& setting) const {
    return learning_runs_.at(setting).runs;
  }

  [[nodiscard]] const std::map<SimulatedSetting, SimRuns>& all_runs() const noexcept {
    return runs_;
  }
  [[nodiscard]] const std::map<SimulatedSetting, LearningRuns>& all_learning_runs() const noexcept {
    return learning_runs_;
  }

  /// The normalised error that a model is to reach; the report says how long that takes.
  static constexpr double error_goal = 0.1;

 private:
  void simulate();
  void learn();

  ExperimentOptions options_;
  std::map<SimulatedSetting, SimRuns> runs_;
  std::map<SimulatedSetting, LearningRuns> learning_runs_;
};

}  // namespace starling::program
