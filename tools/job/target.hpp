/// `--until`: the metric and value at which a job ends. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starling/actor/job/job.hpp"
#include "starling/base/result.hpp"

namespace starling::program {

/// Reads `accuracy=0.95`, `loss=0.1`, `mse<=2`, `recall>=0.9`. With `=`, a loss or an error (loss,
/// mse, rmse, mae, error) is to fall to the value, and any other metric is to rise to it. Refuses
/// the wrong direction for losses, errors and accuracy, and values that they cannot have.
[[nodiscard]] Result<actor::Target> parse_target(std::string_view text);

/// Prints a target, in quotes if it has spaces, so that a shell takes it for one word.
[[nodiscard]] std::string print(const actor::Target& target);

/// Refuses a target whose name is not one of `metrics`, which the model computes itself, nor one of
/// `figures`, the names of figure_names(). Refuses a value that a figure of that name cannot have.
[[nodiscard]] Result<void> check_target(const actor::Target& target, const models::Metrics& metrics,
                                        const std::vector<std::string>& figures = {});

}  // namespace starling::program
