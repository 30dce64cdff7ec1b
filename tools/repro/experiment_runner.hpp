/// Runs the settings that the experiments of a report ask for: each setting once, however many
/// experiments want it, all of them side by side. One thread; run() uses more.
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

/// One setting of the published simulation: steps of 100 ms on average, exponential, for 40 s.
struct World {
  std::string barrier;
  std::size_t workers = 1000;
  /// As --straggler takes it, empty for none.
  std::string straggler{};
  std::string recheck = "arrival";

  auto operator<=>(const World&) const = default;
};

/// The five barriers of the published figures.
[[nodiscard]] const std::vector<std::string>& published_five();

/// A run in which a linear model learned.
struct LearningRun {
  std::uint64_t seed = 0;
  /// The normalised error over time in seconds.
  std::vector<PlotPoint> errors{};
};

struct ExperimentOptions {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 20;
  std::size_t threads = 1;
  /// Uses fewer settings and less data, to check that everything works.
  bool quick = false;
  bool quiet = false;
};

/// The runs of one setting in which a model learned.
struct LearnedRuns {
  /// Each run lasts 40 s of virtual time, however small its error is.
  bool whole = false;
  std::vector<LearningRun> runs{};
};

class ExperimentRunner {
 public:
  explicit ExperimentRunner(const ExperimentOptions& options) : options_(options) {}

  [[nodiscard]] const ExperimentOptions& options() const noexcept { return options_; }

  /// Asks for runs under every seed. Requires: texts that parse.
  void want(const World& world) { runs_[world]; }
  /// Asks for a model to learn: for the whole 40 s, or until its error is below error_goal.
  void want_learning(const World& world, bool whole);

  /// Makes all runs that were asked for.
  void run();

  /// Requires: `world` was wanted, and run() made its runs.
  [[nodiscard]] const SimRuns& of(const World& world) const { return runs_.at(world); }
  [[nodiscard]] const std::vector<LearningRun>& learned(const World& world) const {
    return learned_.at(world).runs;
  }

  [[nodiscard]] const std::map<World, SimRuns>& all() const noexcept { return runs_; }
  [[nodiscard]] const std::map<World, LearnedRuns>& all_learned() const noexcept {
    return learned_;
  }

  /// The normalised error: a run is timed until it first reaches this.
  static constexpr double error_goal = 0.1;

 private:
  void simulate();
  void learn();

  ExperimentOptions options_;
  std::map<World, SimRuns> runs_;
  std::map<World, LearnedRuns> learned_;
};

}  // namespace starling::program
