/// Compares the figures of a live run with those of its simulations, to show whether the actors
/// behave as the simulator predicts. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/engine/sim/steps/steps.hpp"

namespace starling::program {

/// The figures of one run, live or simulated.
struct RunFigures {
  double updates = 0;
  /// The least, the median and the largest number of a worker's steps at the end.
  double steps_min = 0;
  double steps_median = 0;
  double steps_max = 0;
  /// The largest lag, in steps, at any time of the run.
  double max_lag = 0;
  /// The share of the workers' time in which they waited at barriers, 0 to 1.
  double waiting_share = 0;
  double elapsed_s = 0;
};

/// Returns the figures of a live run from its progress at the end.
[[nodiscard]] RunFigures figures_of(const actor::Progress& end);

/// Simulates a run that ends as a live one does: when its time is over, each worker finishes the
/// step that it has begun, and begins no other. Requires: sim::check() accepts the options.
[[nodiscard]] RunFigures simulate_twin(const sim::StepOptions& options);

/// One figure of a live run and of its simulations.
struct FigureComparison {
  std::string name;
  double live = 0;
  /// The 0.5 %, 50 % and 99.5 % quantiles of the simulations.
  double low = 0;
  double median = 0;
  double high = 0;
  /// The live figure agrees with the simulations if it is within these bounds, both included.
  double allowed_min = 0;
  double allowed_max = 0;

  [[nodiscard]] bool is_inside() const { return allowed_min <= live && live <= allowed_max; }
};

/// Compares a live run with its simulations. If the live run `completed` all its steps, compares
/// the time that it took, else the updates and steps that it made in its time; also the largest lag
/// and the waiting share. The lower bound of a figure is 5 % below `low`, and the upper bound 5 %
/// above `high`. The bounds of the waiting share are at least 1 percentage point beyond these
/// quantiles, because asking a barrier takes time even if the worker never waits. Requires:
/// `simulated` is not empty.
[[nodiscard]] std::vector<FigureComparison> compare(const RunFigures& live,
                                                    std::span<const RunFigures> simulated,
                                                    bool completed);

/// Returns the value below which a share `q` of the values lies, interpolated linearly between two
/// of them. Requires: `values` is sorted and not empty; 0 <= q <= 1.
[[nodiscard]] double quantile(std::span<const double> values, double q);

}  // namespace starling::program
