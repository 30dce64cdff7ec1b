/// Simulated runs as figures: the figures kept of one run, and those of many runs of one barrier
/// together. Plain values and functions; any thread.
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

/// One run, without the list of every worker's step: a million workers are one histogram.
struct SimRun {
  std::uint64_t seed = 0;
  std::size_t workers = 0;
  /// Steps over the workers, at the end.
  Summary steps{};
  double median = 0;
  /// Steps in order, each with the number of workers that stood there at the end.
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
  /// The normalised error over time in seconds, where a model learned.
  std::vector<PlotPoint> errors{};
};

/// Requires: `result` is of `options`.
[[nodiscard]] SimRun figures_of(const sim::StepOptions& options, const sim::StepResult& result);

/// SimRuns of one barrier under different seeds.
using SimRuns = std::vector<SimRun>;

/// A figure of each run, summarised over the runs.
[[nodiscard]] Summary over_runs(const SimRuns& runs,
                                const std::function<double(const SimRun&)>& figure);

[[nodiscard]] double messages_a_step(const SimRun& run);
/// Returns the updates per second of virtual time.
[[nodiscard]] double updates_per_second(const SimRun& run);

/// Returns the share of the workers, over all runs together, that made at most a number of steps.
[[nodiscard]] Series steps_cdf(const std::string& name, const SimRuns& runs);

/// Returns a figure of the curve over time in seconds, as the mean over the runs.
[[nodiscard]] Series over_time(
    const std::string& name, const SimRuns& runs,
    const std::function<double(const SimRun&, const sim::Point&)>& figure);

/// Returns the error over time, as the mean over the runs. Requires: a model learned in each run.
[[nodiscard]] Series error_over_time(const std::string& name, const SimRuns& runs);

/// Returns the kind, with the number `id`, of a run under this barrier: runs under sampled barriers
/// make many steps and many draws.
[[nodiscard]] PieceWatch::Kind kind_of(std::size_t id, const barrier::Barrier& barrier);

/// Returns the pieces in the order in which they begin: first one of each kind, which shows how
/// long its kind takes, then the others, each time the costliest first.
[[nodiscard]] std::vector<std::size_t> costliest_first(const std::vector<PieceWatch::Kind>& kinds);

/// Makes the runs of all `options`, in the order of `options`, on up to `threads` threads; the
/// result does not depend on the number of threads. Calls `watch` on this thread with the progress
/// of all. Where a `problem` is given, a model learns it in each run.
[[nodiscard]] SimRuns simulate_all(std::span<const sim::StepOptions> options, std::size_t threads,
                                   const std::function<void(const PieceProgress&)>& watch,
                                   const LinearProblem* problem = nullptr);

}  // namespace starling::program
