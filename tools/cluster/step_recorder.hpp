/// Records the times of the steps of a job that runs on nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "starling/tools/advise/step_trace.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Returns the options `from`, `job`, `record`, `keys` and `insecure`, for the group `group` of the
/// help.
[[nodiscard]] std::vector<KeyDescription> recording_options(const char* group);

/// The steps of a job, and its name.
struct RecordedSteps {
  std::string job;
  StepTrace trace;
};
/// Records the steps of the job that the options name, for the time of `record`, or until the job
/// ends. Blocking. If no node answers, prints the error and returns nothing. Returns an Error if
/// there is no such job, if the job runs a flow, or if check_recorded_job() or check_step_trace()
/// refuses the job or its steps.
[[nodiscard]] Result<std::optional<RecordedSteps>> record_steps(const Settings& settings);

}  // namespace starling::program
