/// What is said of a campaign of deterministic simulation testing, or of one scenario that was run
/// again. Plain values and functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "starling/engine/sim/chaos.hpp"

namespace starling::app {

/// What many runs came to.
struct ChaosTotals {
  /// Seeds that were run, and that were asked for.
  std::uint64_t runs = 0;
  std::uint64_t asked = 1;
  bool interrupted = false;
  sim::ChaosReport sum = {};
  /// Jobs that ended with an error, as they may.
  std::uint64_t gave_up = 0;
  double wall_s = 0;

  void add(const sim::ChaosReport& report);
};

/// A scenario in which an invariant broke.
struct ChaosFailure {
  std::uint64_t seed = 0;
  sim::Scenario scenario;
  sim::ChaosReport report = {};
  /// True where it was cut down to this from what the seed drew.
  bool is_cut_down = false;
  /// Where the scenario is; empty where it could not be written.
  std::string file = {};
};

/// "starling VERSION, commit COMMIT".
[[nodiscard]] std::string build_text();

[[nodiscard]] std::string chaos_text(const ChaosTotals& totals,
                                     const std::optional<ChaosFailure>& failure);

/// One JSON object.
[[nodiscard]] std::string chaos_json(const ChaosTotals& totals,
                                     const std::optional<ChaosFailure>& failure);

}  // namespace starling::app
