/// Makes a job that is ready to start from settings: loads the data, makes the model and runs all
/// checks.
#pragma once

#include <span>
#include <string>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Prepares a job. `job_file` is the file from which settings were read, empty for none. Prints on
/// stderr that it loads data, and which settings have no effect. The error for the first wrong
/// setting begins with its location.
[[nodiscard]] Result<PreparedRun> prepare(const Registry& registry, const Settings& settings,
                                          const std::string& job_file);

/// Takes the optimiser, weight decay and schedule from the recipe, unless the settings give them.
/// Returns true if the recipe decides the schedule: a cosine over the job, if its steps are known.
/// Requires: `options` has the final steps and batch.
[[nodiscard]] bool apply_recipe(const models::Recipe& recipe, actor::TrainOptions& options,
                                const Settings& settings, std::size_t samples);

/// Warns on stderr if a recheck policy was given and none of the barriers draws workers.
void say_what_has_no_effect(std::span<const barrier::Barrier> barriers, const Settings& settings);

}  // namespace starling::program
