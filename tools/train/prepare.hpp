/// Prepares a job from its settings: loads the data, makes the model and runs all checks.
#pragma once

#include <span>
#include <string>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Prepares a job. `job_file` is the job file from which settings were read; empty if there was
/// none. Unless the job is quiet, prints on stderr that it loads data, and which settings have no
/// effect. The error for the first wrong setting begins with its location. A program that follows a
/// job gives the checkpoint from which the nodes have resumed it as `scaling_file`: the data are
/// scaled like the data of this checkpoint, and the job does not resume from it in this process.
[[nodiscard]] Result<PreparedRun> prepare(const Registry& registry, const Settings& settings,
                                          const std::string& job_file,
                                          const std::string& scaling_file = {});

/// Refuses a barrier under which workers hand in early if the model's batches cannot be divided.
[[nodiscard]] Result<void> check_hand_ins(const AnyModel& model, const barrier::Barrier& barrier,
                                          bool dynamic_batches);

/// Refuses a compression rule that does not suit the model or the other options.
[[nodiscard]] Result<void> check_compression(const AnyModel& model,
                                             const actor::TrainOptions& options);

/// Refuses options of learning by gradients for an algorithm that does not learn by gradients.
[[nodiscard]] Result<void> check_gradient_options(const AnyModel& model, const Settings& settings);

/// Sets the optimiser, the weight decay and the schedule as the model's recipe says, each unless
/// the settings give it. If they give an optimiser, leaves the schedule too. Returns true if the
/// recipe decides the schedule: a cosine over the whole job, or a constant rate if the job has no
/// limit of steps. `samples` is the number of training samples. Requires: `options` has its final
/// steps and batch.
[[nodiscard]] bool apply_recipe(const models::Recipe& recipe, actor::TrainOptions& options,
                                const Settings& settings, std::size_t samples);

}  // namespace starling::program
