/// Simulated runs as figures: what is kept of a run, and what many runs of one barrier say
/// together. Plain values and functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "starling/app/sim/linear_learner.hpp"
#include "starling/app/sim/parallel.hpp"
#include "starling/app/sim/plot.hpp"
#include "starling/app/sim/statistics.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/steps.hpp"
#include "starling/engine/sim/traffic.hpp"
#include "starling/models/model.hpp"

namespace starling::app {

/// One run, without its list of every worker's step: a million workers are one histogram.
struct SimRun {
  std::uint64_t seed = 0;
  std::size_t workers = 0;
  /// Over the workers, at the end.
  Summary steps{};
  double median = 0;
  /// A step, and how many workers stood there; by step.
  std::vector<std::pair<sim::Step, std::uint64_t>> histogram{};
  std::vector<sim::Point> curve{};
  std::uint64_t updates = 0;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  double waiting_share = 0;
  sim::Messages messages{};
  double elapsed_s = 0;
  sim::Step max_lag = 0;
  /// Protocol level only: the model's figures at each point of the curve, what was sent by kind of
  /// message, and what became of the packets.
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
/// Of virtual time.
[[nodiscard]] double updates_per_second(const SimRun& run);

/// The share of the workers, of all runs together, that made at most so many steps.
[[nodiscard]] Series steps_cdf(const std::string& name, const SimRuns& runs);

/// A figure of the curve over time in seconds, its mean over the runs.
[[nodiscard]] Series over_time(
    const std::string& name, const SimRuns& runs,
    const std::function<double(const SimRun&, const sim::Point&)>& figure);

/// The error over time, its mean over the runs. Requires: in each of them a model learned.
[[nodiscard]] Series error_over_time(const std::string& name, const SimRuns& runs);

/// The kind of piece that a run under this barrier is, the `id`th: under sampled barriers runs make
/// many steps and many draws.
[[nodiscard]] PieceWatch::Kind kind_of(std::size_t id, const barrier::Barrier& barrier);

/// The pieces in the order in which they begin: one of each kind, which tells what its kind takes,
/// then the others, each time the costliest first.
[[nodiscard]] std::vector<std::size_t> costliest_first(const std::vector<PieceWatch::Kind>& kinds);

/// Makes the runs of all `options`, each one's in its place, on up to `threads` threads; the result
/// does not depend on their number. `watch` is told how far all are, on this thread. Where a
/// `problem` is given, a model learns it in each.
[[nodiscard]] SimRuns simulate_all(std::span<const sim::StepOptions> options, std::size_t threads,
                                   const std::function<void(const PieceProgress&)>& watch,
                                   const LinearProblem* problem = nullptr);

}  // namespace starling::app
