/// Returns the figures of a report as CSV and JSON, for other programs. Pure functions;
/// thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "starling/tools/repro/experiment_results.hpp"
#include "starling/tools/repro/experiment_runner.hpp"

namespace starling::program {

/// Returns CSV with a row for each setting and seed.
[[nodiscard]] std::string runs_csv(const ExperimentRunner& runner);

/// Returns CSV with a row for each setting and seed: the virtual time in seconds at which the error
/// of the model was first at most 0.1.
[[nodiscard]] std::string learning_csv(const ExperimentRunner& runner);

/// Returns a table with a row for each claim.
[[nodiscard]] TextTable claims_table(const ExperimentResults& results);

/// Converts a claim to JSON, for nlohmann::json: its four fields as texts.
void to_json(nlohmann::ordered_json& json, const Claim& claim);

/// Returns one JSON object: the seeds, the claims, and for each setting its means with standard
/// errors.
[[nodiscard]] std::string summary_json(const ExperimentRunner& runner,
                                       const ExperimentResults& results);

}  // namespace starling::program
