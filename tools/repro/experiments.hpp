/// The simulated experiments of the PSP paper (arXiv 1709.07772), and further ones. One thread.
#pragma once

#include <vector>

#include "starling/tools/report/document.hpp"
#include "starling/tools/repro/experiment_results.hpp"
#include "starling/tools/repro/experiment_runner.hpp"

namespace starling::program {

struct Experiment {
  /// Requests the runs that the experiment needs.
  void (*request_runs)(ExperimentRunner& runner);
  /// Returns the section of the report, and adds its claims and plots to `results`. Requires: the
  /// runner has run.
  Section (*report)(const ExperimentRunner& runner, ExperimentResults& results);
};

/// Returns the experiments in the order of the report.
[[nodiscard]] std::vector<Experiment> psp_experiments();

/// The experiments that psp_experiments() returns, each defined in the file of its kind.
[[nodiscard]] Experiment progress_experiment();
[[nodiscard]] Experiment sample_size_experiment();
[[nodiscard]] Experiment time_experiment();
[[nodiscard]] Experiment straggler_share_experiment();
[[nodiscard]] Experiment straggler_slowness_experiment();
[[nodiscard]] Experiment size_experiment();
[[nodiscard]] Experiment learning_experiment();
[[nodiscard]] Experiment lag_experiment();
[[nodiscard]] Experiment recheck_experiment();

}  // namespace starling::program
