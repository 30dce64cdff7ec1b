/// The command `starling repro barriers`. Blocking; one thread calls it.
#pragma once

#include <chrono>

#include "starling/base/result.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {

struct BarriersOptions {
  ReproOptions report{};
  /// The wall time of each live run.
  std::chrono::nanoseconds live = std::chrono::seconds{8};
};

/// Runs barriers of the literature, simulated and live, and writes a report. Returns the exit code,
/// or an Error if the input is bad.
[[nodiscard]] Result<int> repro_barriers_command(const Registry& registry,
                                                 const BarriersOptions& options);

}  // namespace starling::program
