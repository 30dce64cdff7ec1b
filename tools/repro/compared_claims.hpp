/// Claims of papers beside the figures of simulations and of live runs. Plain values and pure
/// functions; thread-safe to read and call.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "starling/tools/report/table.hpp"
#include "starling/tools/repro/experiment_results.hpp"

namespace starling::program {

/// A claim, and the same figure in live runs. The claim's status judges the simulated figure, or
/// the live figure if nothing is simulated.
struct ComparedClaim {
  Claim claim;
  std::string live;
};

/// The live figure of a claim about which no live run says anything.
inline constexpr const char* not_run_live = "not run live";

[[nodiscard]] TextTable compared_claims_table(const std::vector<ComparedClaim>& claims);

/// Returns the number of claims whose status is `reproduced`.
[[nodiscard]] std::size_t reproduced(const std::vector<ComparedClaim>& claims);

/// Converts a claim to JSON, for nlohmann::json: the fields of Claim, and `live`.
void to_json(nlohmann::ordered_json& json, const ComparedClaim& compared);

}  // namespace starling::program
