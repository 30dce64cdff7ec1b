/// Prints the part of a job's summary about its evaluations and the model that they chose. Internal
/// to the report.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "starling/tools/train/report.hpp"

namespace starling::program {

/// Returns a whole number as one, and any other number as it is: a mean of steps may not be whole.
[[nodiscard]] nlohmann::ordered_json whole_or_real(double value);

/// Returns how many evaluations there were, how many were skipped and why, the best model, and
/// which model is kept.
[[nodiscard]] nlohmann::ordered_json evaluations_json(const EndedJob& ended);

/// Returns the counts of evaluations for people; empty if a job was only evaluated at its end.
[[nodiscard]] std::string evaluations_text(const EndedJob& ended);

/// Returns which model is kept; empty if it is the last one.
[[nodiscard]] std::string kept_text(const EndedJob& ended);

/// Returns why a job ended early; empty if it did not.
[[nodiscard]] std::string early_stop_text(const EndedJob& ended);

}  // namespace starling::program
