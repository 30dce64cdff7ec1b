/// The experiments of the PSP paper, arXiv 1709.07772, and what it did not ask. One thread.
#pragma once

#include <vector>

#include "starling/app/sim/document.hpp"
#include "starling/app/sim/experiment_results.hpp"
#include "starling/app/sim/experiment_runner.hpp"

namespace starling::app {

struct Experiment {
  /// Asks the runner for what it needs.
  void (*plan)(ExperimentRunner& runner);
  /// Says what came out, once the runner has run.
  Section (*report)(const ExperimentRunner& runner, ExperimentResults& results);
};

/// In the order of the report.
[[nodiscard]] std::vector<Experiment> psp_experiments();

/// The parts of psp_experiments(), a file each.
[[nodiscard]] Experiment progress_experiment();
[[nodiscard]] Experiment sample_size_experiment();
[[nodiscard]] Experiment time_experiment();
[[nodiscard]] Experiment straggler_share_experiment();
[[nodiscard]] Experiment straggler_slowness_experiment();
[[nodiscard]] Experiment size_experiment();
[[nodiscard]] Experiment learning_experiment();
[[nodiscard]] Experiment lag_experiment();
[[nodiscard]] Experiment recheck_experiment();

}  // namespace starling::app
