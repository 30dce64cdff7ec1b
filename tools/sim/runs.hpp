/// The figures of simulated runs: those of one run, and those of many runs of one barrier together.
/// Plain values and pure functions; thread-safe to read and call.
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

/// The figures of one run. The workers' steps are kept as a histogram, because a run may have a
/// million workers.
struct SimRun {
  std::uint64_t seed = 0;
  std::size_t workers = 0;
  /// Statistics of the steps that the workers have made at the end, and the median of these steps.
  Summary steps{};
  double median = 0;
  /// Steps in ascending order, each with the number of workers that were at it at the end.
  std::vector<std::pair<sim::Step, std::uint64_t>> histogram{};
  /// The figures from here to `max_lag` are those of sim::StepResult.
  std::vector<sim::Point> curve{};
  std::uint64_t updates = 0;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  double waiting_share = 0;
  sim::Messages messages{};
  double elapsed_s = 0;
  sim::Step max_lag = 0;
  /// Step level only, if an exchange was simulated.
  std::optional<sim::ExchangeFigures> exchange = std::nullopt;
  /// Protocol level only: the model's metrics at each point of the curve, the traffic by kind of
  /// message, and the counts of packets.
  std::vector<models::Metrics> metrics{};
  sim::TrafficByKind traffic{};
  sim::Network::Counts packets{};
  /// Protocol level only: the figure of the same name in sim::ProtocolResult.
  std::optional<sim::Time> longest_gap = std::nullopt;
  /// The normalised error of the linear model over time in seconds; empty if none learned.
  std::vector<PlotPoint> errors{};
};

/// Returns the figures of a run. Requires: `result` is the result of a simulation with `options`.
[[nodiscard]] SimRun figures_of(const sim::StepOptions& options, const sim::StepResult& result);

/// Several runs. The functions below that summarise runs expect the runs of one barrier under
/// different seeds.
using SimRuns = std::vector<SimRun>;

/// Summarises a figure over the runs.
[[nodiscard]] Summary over_runs(const SimRuns& runs,
                                const std::function<double(const SimRun&)>& figure);

/// Returns the messages of barrier control for each step of a worker.
[[nodiscard]] double messages_a_step(const SimRun& run);
/// Returns the updates per second of virtual time.
[[nodiscard]] double updates_per_second(const SimRun& run);

/// Returns the cumulative distribution of the workers' steps in all runs together: for each number
/// of steps, the share of workers that made at most this number.
[[nodiscard]] Series steps_cdf(const std::string& name, const SimRuns& runs);

/// Returns the mean of a figure over the runs, at each point of their curves, over time in seconds.
/// A run that has ended counts with its last point.
[[nodiscard]] Series over_time(
    const std::string& name, const SimRuns& runs,
    const std::function<double(const SimRun&, const sim::Point&)>& figure);

/// Returns the mean of the error over the runs, over time in seconds. Requires: a linear model
/// learned in each run.
[[nodiscard]] Series error_over_time(const std::string& name, const SimRuns& runs);

/// Returns the kind of a run under `barrier`, with the number `id`, for ProgressEstimator. The
/// expected cost depends on the barrier: runs under sampled barriers make many steps and many
/// draws.
[[nodiscard]] ProgressEstimator::Kind kind_of(std::size_t id, const barrier::Barrier& barrier);

/// Returns the order in which pieces of work should begin, as indices into `kinds`: first one piece
/// of each kind, which shows how long this kind takes, then the others. Both parts are sorted by
/// cost, the highest first.
[[nodiscard]] std::vector<std::size_t> costliest_first(
    const std::vector<ProgressEstimator::Kind>& kinds);

/// Simulates a run for each of `options` on up to `threads` threads. Returns the runs in the order
/// of `options`; the result does not depend on the number of threads. Calls `on_progress` about ten
/// times a second on the caller's thread. If `problem` is not null, a linear model learns it in
/// each run.
[[nodiscard]] SimRuns simulate_all(std::span<const sim::StepOptions> options, std::size_t threads,
                                   const std::function<void(const OverallProgress&)>& on_progress,
                                   const LinearProblem* problem = nullptr);

}  // namespace starling::program
