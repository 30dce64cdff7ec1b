/// `--until`: the metric and value at which a job ends. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

/// Reads a target like `accuracy=0.95`, `loss=0.1`, `mse<=2`, `recall>=0.9`. With `=`, a target for
/// loss, mse, rmse, mae or error is reached if the metric is at most the value, and a target for
/// any other metric if it is at least the value. For these five metrics and for accuracy, refuses
/// the opposite direction and values that the metric cannot have.
[[nodiscard]] Result<actor::Target> parse_target(std::string_view text);

/// Prints a target, in quotes if it has spaces, so that a shell reads it as one argument.
[[nodiscard]] std::string print(const actor::Target& target);

/// Refuses a target whose metric is neither one of `metrics`, which the model computes itself, nor
/// one of `evaluation_metrics`, which an evaluation computes (the result of metric_names()). For
/// the latter, refuses a value that the metric cannot have, and the direction in which it would get
/// worse.
[[nodiscard]] Result<void> check_target(const actor::Target& target, const models::Metrics& metrics,
                                        const std::vector<std::string>& evaluation_metrics = {});

}  // namespace starling::program
