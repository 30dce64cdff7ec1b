/// Training runs of several barriers, live and in turn. Blocking; one thread calls.
#pragma once

#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/repro/training.hpp"
#include "starling/tools/repro/training_keys.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Refuses a job whose model has no accuracy to be evaluated.
[[nodiscard]] Result<void> check_accuracy(const Prepared& ready);

/// Runs every barrier under every seed: seed by seed, and within a seed the barriers one after
/// another, each seed beginning with another barrier, so that other load on the machine hits all
/// barriers alike.
///
/// No model is evaluated during its run: after each step of the workers, on average, the servers
/// hand out a copy of what they hold; the last copy before each instant is kept, and evaluated when
/// the run is over.
///
/// Returns the error of a run that failed. Requires: check_accuracy().
[[nodiscard]] Result<std::vector<BarrierRuns>> run_training(const Prepared& ready,
                                                            const TrainingOptions& options);

}  // namespace starling::program
