/// From settings to a job that is ready to start: data loaded, model made, all checks passed.
#pragma once

#include <span>
#include <string>

#include "starling/app/recorder.hpp"
#include "starling/app/registry.hpp"
#include "starling/app/settings.hpp"
#include "starling/barrier/barrier.hpp"
#include "starling/base/result.hpp"

namespace starling::app {

/// `job_file` is where settings were read, empty for none. Says on stderr that it loads data, and
/// what has no effect. The first thing that is wrong is refused with its place.
[[nodiscard]] Result<Prepared> prepare(const Registry& registry, const Settings& settings,
                                       const std::string& job_file);

/// Optimiser, weight decay and schedule are the recipe's where the settings do not say them. True
/// where the schedule is left to the recipe: a cosine over the job, where its steps are known.
/// Requires: steps and batch as they are.
[[nodiscard]] bool follow(const models::Recipe& recipe, live::TrainOptions& options,
                          const Settings& settings, std::size_t samples);

/// Says on stderr where a recheck policy was asked for and none of the barriers draws anyone.
void say_what_has_no_effect(std::span<const barrier::Barrier> barriers, const Settings& settings);

}  // namespace starling::app
