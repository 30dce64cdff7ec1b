/// Compares published claims about the barriers of a study with its simulated and its live runs.
/// Plain values and pure functions; thread-safe to read and call.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/report/table.hpp"
#include "starling/tools/repro/barriers/study.hpp"
#include "starling/tools/repro/experiment_results.hpp"

namespace starling::program {

/// A claim, and the same figure in the live runs. The status judges the simulated figure.
struct BarrierClaim {
  Claim simulated;
  std::string live;
};

/// Returns the claims. Numbers in the column of published values are those of earlier simulations
/// of the papers' algorithms, because the papers' own figures depend on their machines.
[[nodiscard]] std::vector<BarrierClaim> barrier_claims(const BarrierStudy& study);

[[nodiscard]] TextTable barrier_claims_table(const std::vector<BarrierClaim>& claims);

/// Returns a number that is live with a constant and with an exponential delay, for each: "1.64 and
/// 1.31".
[[nodiscard]] std::string live_ratio_text(const BarrierStudy& study, const std::string& barrier);

}  // namespace starling::program
