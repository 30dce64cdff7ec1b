/// The figures of training runs under several barriers, all of the same wall time, and the claims
/// of the PSP paper's training run (arXiv 1709.07772, section 4) that they reproduce or not. Plain
/// values and pure functions; thread-safe to read and call.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "starling/barrier/barrier.hpp"
#include "starling/tools/report/statistics.hpp"
#include "starling/tools/repro/experiment_results.hpp"

namespace starling::program {

/// The state of a run at one instant.
struct TrainingPoint {
  double seconds = 0;
  /// Updates of all workers together.
  double updates = 0;
  /// The share of the evaluated samples that the model classifies correctly, 0 to 1.
  double accuracy = 0;
};

struct TrainingRun {
  std::uint64_t seed = 0;
  /// A point for each of several equally spaced instants; the last one is the end of the run. The
  /// instants are the same in every run, but a run has no points before the first model was read.
  std::vector<TrainingPoint> curve{};
  /// The fewest, the median and the most steps of a worker at the end.
  double steps_min = 0;
  double steps_median = 0;
  double steps_max = 0;
  /// The share of the workers' time that they spent waiting at the barrier.
  double waiting_share = 0;
  /// The mean time of a step in ms, without the delay that the job adds and without waiting at the
  /// barrier.
  double overhead_ms = 0;
};

/// The runs of one barrier under different seeds.
struct BarrierRuns {
  barrier::Barrier barrier;
  std::vector<TrainingRun> runs{};
};

/// Summarises a figure over the runs of a barrier.
[[nodiscard]] Summary over_runs(const BarrierRuns& runs,
                                const std::function<double(const TrainingRun&)>& figure);

/// Return the updates and the accuracy at the end of the run. Require: its curve has points.
[[nodiscard]] double final_updates(const TrainingRun& run);
[[nodiscard]] double final_accuracy(const TrainingRun& run);

/// Summarises the accuracy over the last fifth of the curve, but over at least two points unless
/// the curve has fewer.
[[nodiscard]] Summary late_accuracy(const TrainingRun& run);

/// Returns the accuracy of the last point with at most `updates` updates. If all points have more,
/// returns the accuracy of the first point. Requires: the curve has points.
[[nodiscard]] double accuracy_at(const TrainingRun& run, double updates);

/// Returns the mean over the runs at each instant at which every run has a point.
[[nodiscard]] std::vector<TrainingPoint> mean_curve(const BarrierRuns& runs);

/// Adds the published claims about the barriers of `all`, each with its status. Requires: all
/// barriers have runs of the same seeds, in the same order.
void add_training_claims(const std::vector<BarrierRuns>& all, ExperimentResults& results);

}  // namespace starling::program
