/// Simulates a job message by message (`--level protocol`): the job's own model learns the job's
/// own data in virtual time. Blocking; one thread calls, and the runs use the job's threads.
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

/// The model that the workers train, the data, and all options of a run except its barrier and its
/// seed.
struct Learning {
  std::shared_ptr<const AnyModel> model;
  TrainAndTest data;
  sim::LearnOptions options;
  /// The description of the learning in reports.
  Learned learned;
};

/// Returns the names of the job options that say what is learned and how.
[[nodiscard]] const std::vector<std::string>& learning_keys();

/// Loads the data and makes the model. Returns an Error if the model cannot learn the data, or if
/// the job cannot be simulated.
[[nodiscard]] Result<Learning> make_learning(const SimJob& job, const Settings& settings,
                                             const Registry& registry);

/// Makes a run for each barrier and seed, barrier by barrier; the result does not depend on the
/// number of threads. Calls `on_progress` with the share that is done. Returns the error of a run
/// that failed.
[[nodiscard]] Result<SimRuns> simulate_learning(
    const SimJob& job, const Learning& learning,
    const std::function<void(const PieceProgress&)>& on_progress);

}  // namespace starling::program
