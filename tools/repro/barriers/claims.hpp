/// Compares published claims about the barriers of a study with its simulated and its live runs.
/// Plain values and pure functions; thread-safe to read and call.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/repro/barriers/study.hpp"
#include "starling/tools/repro/compared_claims.hpp"

namespace starling::program {

/// Returns the claims. Numbers in the column of published values are those of earlier simulations
/// of the papers' algorithms, because the papers' own figures depend on their machines.
[[nodiscard]] std::vector<ComparedClaim> barrier_claims(const BarrierStudy& study);

/// Returns the live updates a second of a barrier divided by those of bsp, first with a constant
/// delay, then with an exponential one: "1.64 and 1.31". Requires: both barriers ran live.
[[nodiscard]] std::string live_ratio_text(const BarrierStudy& study, const std::string& barrier);

}  // namespace starling::program
