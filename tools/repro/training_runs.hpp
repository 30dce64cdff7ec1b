/// Makes live training runs under several barriers, one after another. Blocking; one thread calls.
#pragma once

#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/repro/training.hpp"
#include "starling/tools/repro/training_keys.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Returns an Error if the job has no test samples, or its model does not compute an accuracy.
[[nodiscard]] Result<void> check_accuracy(const PreparedRun& ready);

/// Trains under every barrier with every seed: seed by seed, and with one seed the barriers one
/// after another. Each seed begins with another barrier, so that other load on the machine affects
/// all barriers alike.
///
/// No model is evaluated during its run. Each time that the workers have made a step, on average, a
/// copy of the model is read from the servers. The last copy before each instant is kept, and
/// evaluated after the run.
///
/// Returns the runs of each barrier, or the error of the first run that failed. Requires:
/// check_accuracy() returns no error.
[[nodiscard]] Result<std::vector<BarrierRuns>> run_training(const PreparedRun& ready,
                                                            const TrainingOptions& options);

}  // namespace starling::program
