/// `--until`: the figure that a job is to reach. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

/// Reads `accuracy=0.95`, `loss=0.1`, `mse<=2`, `recall>=0.9`. With `=`, losses and errors (loss,
/// mse, rmse, mae, error) are to fall to the value, all else to rise to it. The other direction is
/// refused for these and for accuracy, and so are values that they cannot have.
[[nodiscard]] Result<actor::Target> parse_target(std::string_view text);

/// Prints a target, in quotes where a shell would take it for several words.
[[nodiscard]] std::string print(const actor::Target& target);

/// Refuses a target that is none of `metrics`, which the model says itself, and none of `figures`,
/// by the names of figure_names(); and values that figures of these names cannot have.
[[nodiscard]] Result<void> check_target(const actor::Target& target, const models::Metrics& metrics,
                                        const std::vector<std::string>& figures = {});

}  // namespace starling::program
