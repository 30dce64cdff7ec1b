/// The figures behind a report, for other programs. Plain functions of values; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "starling/app/sim/findings.hpp"
#include "starling/app/sim/lab.hpp"

namespace starling::app {

/// A row for each setting and seed.
[[nodiscard]] std::string runs_csv(const Lab& lab);

/// A row for each setting, seed: when the error of the model that learned was 0.1.
[[nodiscard]] std::string learning_csv(const Lab& lab);

/// "Published and here", a row for each claim.
[[nodiscard]] TextTable claims_table(const Findings& findings);

/// Its four fields, in words.
void to_json(nlohmann::ordered_json& json, const Claim& claim);

/// One JSON object: the seeds, the claims, and for each setting its means with standard errors.
[[nodiscard]] std::string summary_json(const Lab& lab, const Findings& findings);

}  // namespace starling::app
