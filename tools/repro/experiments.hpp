/// The experiments that the PSP paper simulated (arXiv 1709.07772), and further ones. Not
/// thread-safe.
#pragma once

#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/repro/experiment_results.hpp"
#include "starling/tools/repro/experiment_runner.hpp"

namespace starling::program {

struct Experiment {
  /// Asks the runner for the runs that the experiment needs.
  void (*request_runs)(ExperimentRunner& runner);
  /// Returns the experiment's section of the report, and adds its claims and plots to `results`.
  /// Requires: the runner has made these runs.
  Section (*report)(const ExperimentRunner& runner, ExperimentResults& results);
};

/// Returns the experiments in the order of the report.
[[nodiscard]] std::vector<Experiment> psp_experiments();

/// The experiments that psp_experiments() returns, one function each. The first three show the
/// workers' steps under several barriers, for several sample sizes, and over time
/// (experiments_progress.cpp).
[[nodiscard]] Experiment progress_experiment();
[[nodiscard]] Experiment sample_size_experiment();
[[nodiscard]] Experiment time_experiment();
/// The workers' steps by the share of stragglers, by their slowness, and by the number of workers
/// (experiments_sweeps.cpp).
[[nodiscard]] Experiment straggler_share_experiment();
[[nodiscard]] Experiment straggler_slowness_experiment();
[[nodiscard]] Experiment size_experiment();
/// The error of a model that learns, and the lag compared with theory (experiments_learning.cpp).
[[nodiscard]] Experiment learning_experiment();
[[nodiscard]] Experiment lag_experiment();
/// The workers' steps by the recheck policy (experiments_sweeps.cpp).
[[nodiscard]] Experiment recheck_experiment();

}  // namespace starling::program
