/// The part of a job's summary about its evaluations and the model that the job keeps (KeptModel).
/// Internal to the report.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "starling/tools/train/report.hpp"

namespace starling::program {

/// Returns a JSON integer if the value is whole, else a JSON number with decimals. For mean steps,
/// which may or may not be whole.
[[nodiscard]] nlohmann::ordered_json whole_or_real(double value);

/// Return the metrics of the kept model on the training data and on the test data.
[[nodiscard]] const models::Metrics& train_metrics_of(const EndedJob& ended);
[[nodiscard]] const models::Metrics& test_metrics_of(const EndedJob& ended);

/// Returns how many evaluations there were, how many were skipped and why, the best model, and
/// which model is kept.
[[nodiscard]] nlohmann::ordered_json evaluations_json(const EndedJob& ended);

/// Returns the counts of evaluations as text; empty if the job was evaluated only at its end.
[[nodiscard]] std::string evaluations_text(const EndedJob& ended);

/// Returns a text that says which model is kept; empty if it is the last one.
[[nodiscard]] std::string kept_text(const EndedJob& ended);

/// Returns ": no better test loss for 5 evaluations,", the middle of the summary's row "ended";
/// empty unless the job was stopped early (`--patience`).
[[nodiscard]] std::string early_stop_text(const EndedJob& ended);

}  // namespace starling::program
