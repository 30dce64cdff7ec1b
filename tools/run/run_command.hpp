/// Runs one flow. Not thread-safe.
#pragma once

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Runs a flow with the settings of its flags. Returns the exit code, or an Error if the input is
/// bad and no part was computed. Requires: each setting's key is one of the flow's flags.
[[nodiscard]] Result<int> run_command(const FlowEntry& flow, const Settings& settings);

}  // namespace starling::program
