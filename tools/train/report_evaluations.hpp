/// The part of a summary about a job's evaluations, and of the model that they chose. Internal to
/// the report.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "starling/tools/train/report.hpp"

namespace starling::program {

/// A whole number where it is one: a mean of the workers' steps may be between two.
[[nodiscard]] nlohmann::ordered_json whole_or_real(double value);

/// How many evaluations there were, how many were left out and why; the best model, and which is
/// kept.
[[nodiscard]] nlohmann::ordered_json evaluations_json(const Ended& ended);

/// The same for people; empty of a job that was only evaluated at its end.
[[nodiscard]] std::string evaluations_text(const Ended& ended);

/// Which model is kept; empty where it is the last.
[[nodiscard]] std::string kept_text(const Ended& ended);

/// Why a job ended early; empty elsewhere.
[[nodiscard]] std::string early_text(const Ended& ended);

}  // namespace starling::program
