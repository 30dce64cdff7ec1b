/// Turns settings into a job that is ready to start: data loaded, model made, all checks passed.
#pragma once

#include <span>
#include <string>

#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/recorder.hpp"

namespace starling::program {

/// Prepares a job. `job_file` is the file of the settings, empty for none. Prints on stderr that it
/// loads data, and which settings have no effect. Refuses the first setting that is wrong, with its
/// place.
[[nodiscard]] Result<Prepared> prepare(const Registry& registry, const Settings& settings,
                                       const std::string& job_file);

/// Takes the optimiser, weight decay and schedule from the recipe where the settings do not give
/// them. True where the schedule is left to the recipe: a cosine over the job, where its steps are
/// known. Requires: steps and batch as they are.
[[nodiscard]] bool follow(const models::Recipe& recipe, actor::TrainOptions& options,
                          const Settings& settings, std::size_t samples);

/// Warns on stderr where a recheck policy was asked for and none of the barriers draws workers.
void say_what_has_no_effect(std::span<const barrier::Barrier> barriers, const Settings& settings);

}  // namespace starling::program
