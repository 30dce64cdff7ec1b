/// Compares the figures of a live run with those of its simulations: do the actors do as the
/// simulator predicts? Plain functions of values; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/engine/sim/steps/steps.hpp"

namespace starling::program {

/// One run, live or simulated.
struct TwinRun {
  double updates = 0;
  /// The workers' steps at the end.
  double steps_min = 0;
  double steps_median = 0;
  double steps_max = 0;
  double max_lag = 0;
  double waiting_share = 0;
  double elapsed_s = 0;
};

[[nodiscard]] TwinRun figures_of(const actor::Progress& end);

/// Simulates a live run: when its time is up, each worker finishes the step that it is making and
/// begins no other. Requires: sim::check(options).
[[nodiscard]] TwinRun simulate_twin(const sim::StepOptions& options);

/// One figure of a live run and of its simulations.
struct Compared {
  std::string name;
  double live = 0;
  /// The 0.5 %, the 50 % and the 99.5 % quantile of the simulations.
  double low = 0;
  double middle = 0;
  double high = 0;
  /// Within these bounds the live figure is as it should be.
  double from = 0;
  double to = 0;

  [[nodiscard]] bool is_inside() const { return from <= live && live <= to; }
};

/// Compares the updates and steps that the live run made in its time, or, where it `completed` all
/// its steps, how long it took; and its largest lag and waiting share. The bounds are the
/// quantiles, `low` made 5 % smaller and `high` 5 % larger, and those of the waiting share by at
/// least 1 percentage point, for even a barrier that never holds anyone back takes time to ask.
/// Requires: simulated is not empty.
[[nodiscard]] std::vector<Compared> compare(const TwinRun& live, std::span<const TwinRun> simulated,
                                            bool completed);

/// Returns the value below which the share `q` of the values lies, between two of them by
/// interpolation. Requires: values are sorted, and not empty; 0 <= q <= 1.
[[nodiscard]] double quantile(std::span<const double> values, double q);

}  // namespace starling::program
