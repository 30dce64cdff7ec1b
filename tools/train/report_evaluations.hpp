/// Returns the part of a job's summary about its evaluations and about the model that was chosen by
/// them. Internal to the report.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "starling/tools/train/report.hpp"

namespace starling::program {

/// Returns a JSON integer if the value is whole, else a JSON number with decimals. For mean steps,
/// which may or may not be whole.
[[nodiscard]] nlohmann::ordered_json whole_or_real(double value);

/// Return the metrics of the kept model on the training data and on the test data.
[[nodiscard]] const models::Metrics& train_of(const EndedJob& ended);
[[nodiscard]] const models::Metrics& test_of(const EndedJob& ended);

/// Returns how many evaluations there were, how many were skipped and why, the best model, and
/// which model is kept.
[[nodiscard]] nlohmann::ordered_json evaluations_json(const EndedJob& ended);

/// Returns the counts of evaluations for people; empty if the job was evaluated only at its end.
[[nodiscard]] std::string evaluations_text(const EndedJob& ended);

/// Returns for people which model is kept; empty if it is the last one.
[[nodiscard]] std::string kept_text(const EndedJob& ended);

/// Returns for people why patience ended the job; empty if it did not.
[[nodiscard]] std::string early_stop_text(const EndedJob& ended);

}  // namespace starling::program
