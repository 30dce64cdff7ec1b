/// Simulates every message of a job (`--level protocol`): the job's model is trained on the job's
/// data in virtual time. Blocking. Call it from one thread. The runs are made in parallel, on as
/// many threads as the job sets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/sim/protocol/learn.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/any_model.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/sim/runs.hpp"
#include "starling/tools/sim/sim_job.hpp"

namespace starling::program {

/// The model and the data of a simulated training.
struct Learning {
  std::shared_ptr<const AnyModel> model;
  TrainAndTest data;
  /// All options of a run except its barrier and its seed.
  sim::LearnOptions options;
  /// The description of the training in reports.
  LearningDescription learned;
};

/// Returns the names of the options of a training that a simulation of all messages uses. A
/// simulation of steps alone uses only those of an exchange (is_exchange_key()), and options that
/// decide how many steps an epoch has.
[[nodiscard]] const std::vector<std::string>& learning_keys();

/// Loads the data and makes the model. Returns an Error if the model cannot be trained on the data,
/// or if the job cannot be simulated.
[[nodiscard]] Result<Learning> make_learning(const SimJob& job, const Settings& settings,
                                             const Registry& registry);

/// Simulates a run for each barrier and seed. Returns the runs barrier by barrier, in the order of
/// the seeds, or the error of the first run that failed. The result does not depend on the number
/// of threads. Calls `on_progress` about ten times a second on the caller's thread.
[[nodiscard]] Result<SimRuns> simulate_learning(
    const SimJob& job, const Learning& learning,
    const std::function<void(const OverallProgress&)>& on_progress);

}  // namespace starling::program
