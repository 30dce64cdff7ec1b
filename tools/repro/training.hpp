/// The figures of training runs under several barriers, which all had the same wall time, and which
/// findings of the PSP paper's training run (arXiv 1709.07772, section 4) they reproduce. Plain
/// values and functions; any thread.
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
  /// Points at instants of equal distance; the last one is the end. The instants are the same in
  /// every run, but a run lacks the first ones until it has made a step.
  std::vector<TrainingPoint> curve{};
  /// Steps of the workers at the end.
  double steps_min = 0;
  double steps_median = 0;
  double steps_max = 0;
  /// Share of the workers' time spent waiting at the barrier.
  double waiting_share = 0;
  /// The mean time of a step, in ms, beyond the delay that the job adds to it.
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

/// Return the updates and the accuracy at the end. Require: the run has a curve.
[[nodiscard]] double final_updates(const TrainingRun& run);
[[nodiscard]] double final_accuracy(const TrainingRun& run);

/// Summarises the accuracy over the last fifth of the curve, and over two points at least.
[[nodiscard]] Summary late_accuracy(const TrainingRun& run);

/// Returns the accuracy of the last point with at most `updates` updates; that of the first point
/// if all have more.
[[nodiscard]] double accuracy_at(const TrainingRun& run, double updates);

/// Returns the mean over the runs at each instant that all of them have.
[[nodiscard]] std::vector<TrainingPoint> mean_curve(const BarrierRuns& runs);

/// Adds the published claims about the given barriers, each with its status. Requires: each barrier
/// has runs of the same seeds, in the same order.
void add_training_claims(const std::vector<BarrierRuns>& all, ExperimentResults& results);

}  // namespace starling::program
