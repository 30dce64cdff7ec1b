/// Makes live training runs under several barriers, one after another. Blocking; one thread calls.
#pragma once

#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/repro/training.hpp"
#include "starling/tools/repro/training_keys.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Returns an Error if the job has no test samples, or its model has no accuracy.
[[nodiscard]] Result<void> check_accuracy(const PreparedRun& ready);

/// Runs every barrier under every seed: seed by seed, and within a seed the barriers one after
/// another. Each seed begins with another barrier, so that other load on the machine affects all
/// barriers alike.
///
/// No model is evaluated during its run. After each step of the workers, on average, the servers
/// hand out a copy of the model; the last copy before each instant is kept, and evaluated after the
/// run.
///
/// Returns the error of a run that failed. Requires: check_accuracy().
[[nodiscard]] Result<std::vector<BarrierRuns>> run_training(const PreparedRun& ready,
                                                            const TrainingOptions& options);

}  // namespace starling::program
