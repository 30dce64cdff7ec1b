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

/// Makes one run for each seed and barrier. All barriers run with the first seed, then all with the
/// second, and so on; the order of the barriers rotates from seed to seed, so that other load on
/// the machine affects all barriers alike.
///
/// During a run, a copy of the model is read from its owners each time that the workers' mean step
/// has grown by one. The report shows the accuracy at some times of the run; for each of them, the
/// latest earlier copy is kept. Copies are evaluated after the run, so as not to slow it down.
///
/// Returns the runs of each barrier, or the error of the first run that failed. Requires:
/// check_accuracy() returns no error.
[[nodiscard]] Result<std::vector<BarrierRuns>> run_training(const PreparedRun& ready,
                                                            const TrainingOptions& options);

}  // namespace starling::program
