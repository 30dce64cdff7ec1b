/// Figures of training runs of several barriers side by side: what each barrier made of the same
/// wall time, and which findings of the PSP paper's training run (arXiv 1709.07772, section 4) are
/// found again. Plain values and functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/tools/report/statistics.hpp"
#include "starling/tools/repro/experiment_results.hpp"

namespace starling::program {

/// A model at one instant of its run.
struct TrainingPoint {
  double seconds = 0;
  /// Updates of all workers together.
  double updates = 0;
  /// The share of the evaluated samples that the model classifies rightly, 0 to 1.
  double accuracy = 0;
};

struct TrainingRun {
  std::uint64_t seed = 0;
  /// Points at equal instants, the same instants in every run but for the first few, where some
  /// runs have made no step yet; the last point is the end.
  std::vector<TrainingPoint> curve{};
  /// Steps of the workers at the end.
  double steps_min = 0;
  double steps_median = 0;
  double steps_max = 0;
  /// Share of the workers' time spent waiting at the barrier.
  double waiting_share = 0;
  /// Mean milliseconds that a step took beyond the delay put into it.
  double overhead_ms = 0;
};

/// The runs of one barrier under different seeds.
struct BarrierRuns {
  barrier::Barrier barrier;
  std::vector<TrainingRun> runs{};
};

/// A figure of each run, summarised over the runs.
[[nodiscard]] Summary over_runs(const BarrierRuns& all,
                                const std::function<double(const TrainingRun&)>& figure);

/// Returns the updates, or the accuracy, at the end. Requires: the run has a curve.
[[nodiscard]] double final_updates(const TrainingRun& run);
[[nodiscard]] double final_accuracy(const TrainingRun& run);

/// Summarises the accuracy over the last fifth of the curve, two points at least: its mean, and its
/// spread (sd).
[[nodiscard]] Summary late_accuracy(const TrainingRun& run);

/// Returns the accuracy of the last evaluation with at most `updates` updates, or of the first one
/// where all have more.
[[nodiscard]] double accuracy_at(const TrainingRun& run, double updates);

/// Returns the mean over the runs at each instant that all of them have.
[[nodiscard]] std::vector<TrainingPoint> mean_curve(const BarrierRuns& all);

/// Adds the published claims about the given barriers, each with its status. Requires: the same
/// seeds, in the same order, for each barrier.
void judge_training(const std::vector<BarrierRuns>& all, ExperimentResults& results);

}  // namespace starling::program
