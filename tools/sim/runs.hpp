/// The figures of simulated runs: those of one run, and those of many runs of one barrier together.
/// Plain values and functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/protocol/traffic.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/models/model.hpp"
#include "starling/tools/program/parallel.hpp"
#include "starling/tools/report/plot.hpp"
#include "starling/tools/report/statistics.hpp"
#include "starling/tools/sim/linear_learner.hpp"

namespace starling::program {

/// The figures of one run. Its workers' steps are kept as a histogram, because a run may have a
/// million workers.
struct SimRun {
  std::uint64_t seed = 0;
  std::size_t workers = 0;
  /// The steps that the workers have made at the end, and their median.
  Summary steps{};
  double median = 0;
  /// Steps in ascending order, each with the number of workers that were at it at the end.
  std::vector<std::pair<sim::Step, std::uint64_t>> histogram{};
  std::vector<sim::Point> curve{};
  std::uint64_t updates = 0;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  double waiting_share = 0;
  sim::Messages messages{};
  double elapsed_s = 0;
  sim::Step max_lag = 0;
  /// Protocol level only: the model's figures at each point of the curve, the messages sent by
  /// kind, and the counts of packets.
  std::vector<models::Metrics> figures{};
  sim::TrafficByKind traffic{};
  sim::Network::Counts packets{};
  /// The normalised error over time in seconds; empty if no model learned.
  std::vector<PlotPoint> errors{};
};

/// Returns the figures of a run. Requires: `result` is that of a simulation with `options`.
[[nodiscard]] SimRun figures_of(const sim::StepOptions& options, const sim::StepResult& result);

/// The runs of one barrier under different seeds.
using SimRuns = std::vector<SimRun>;

/// Summarises a figure over the runs.
[[nodiscard]] Summary over_runs(const SimRuns& runs,
                                const std::function<double(const SimRun&)>& figure);

/// Returns the messages of barrier control for each step of a worker.
[[nodiscard]] double messages_a_step(const SimRun& run);
/// Returns the updates per second of virtual time.
[[nodiscard]] double updates_per_second(const SimRun& run);

/// Returns the distribution of the workers' steps over all runs together: for each number of steps
/// the share of workers that made at most so many.
[[nodiscard]] Series steps_cdf(const std::string& name, const SimRuns& runs);

/// Returns a figure of the curve over time in seconds, as the mean over the runs.
[[nodiscard]] Series over_time(
    const std::string& name, const SimRuns& runs,
    const std::function<double(const SimRun&, const sim::Point&)>& figure);

/// Returns the error over time, as the mean over the runs. Requires: a model learned in each run.
[[nodiscard]] Series error_over_time(const std::string& name, const SimRuns& runs);

/// Returns the kind of the piece of work that a run under `barrier` is, with the number `id`. Its
/// cost depends on the barrier: runs under sampled barriers make many steps and many draws.
[[nodiscard]] ProgressEstimator::Kind kind_of(std::size_t id, const barrier::Barrier& barrier);

/// Returns the order in which pieces of work begin: first one of each kind, which shows how long
/// its kind takes, then the others; in both parts the costliest first.
[[nodiscard]] std::vector<std::size_t> costliest_first(
    const std::vector<ProgressEstimator::Kind>& kinds);

/// Makes the runs of all `options`, in the order of `options`, on up to `threads` threads; the
/// result does not depend on the number of threads. Calls `on_progress` on this thread with the
/// progress of all. If a `problem` is given, a model learns it in each run.
[[nodiscard]] SimRuns simulate_all(std::span<const sim::StepOptions> options, std::size_t threads,
                                   const std::function<void(const PieceProgress&)>& on_progress,
                                   const LinearProblem* problem = nullptr);

}  // namespace starling::program
