/// The command `starling advise`. One thread calls it; its simulations run on several threads.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Prints which barrier suits the cluster whose step times are in `file` or, if `file` is empty,
/// are recorded from the job that the settings name. Returns the exit code, or an Error if the
/// input is bad. Requires: each setting's key is one of advise_arguments.cpp.
[[nodiscard]] Result<int> advise_command(const Registry& registry, const std::string& file,
                                         const Settings& settings);

}  // namespace starling::program
