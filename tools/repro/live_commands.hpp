/// The commands `starling repro barriers` and `starling repro exchanges`. Blocking; one thread
/// calls them.
#pragma once

#include <chrono>
#include <string>

#include "starling/base/result.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {

/// The options of a report with live runs.
struct LiveReproOptions {
  ReproOptions report{};
  /// The wall time of each live run.
  std::chrono::nanoseconds live = std::chrono::seconds{8};
};

/// Returns the flags that run a report's command again with these options.
[[nodiscard]] std::string flags_of(const LiveReproOptions& options);

/// Runs barriers of the literature, simulated and live, and writes a report. Returns the exit code,
/// or an Error if the input is bad.
[[nodiscard]] Result<int> repro_barriers_command(const Registry& registry,
                                                 const LiveReproOptions& options);

/// Compares exchanges with what their papers claim, computed, simulated and live, and writes a
/// report. Returns the exit code, or an Error if the input is bad.
[[nodiscard]] Result<int> repro_exchanges_command(const Registry& registry,
                                                  const LiveReproOptions& options);

}  // namespace starling::program
