/// The command `starling collective`. Not thread-safe.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Shows the schedule of an algorithm and its cost, or compares all algorithms if `algorithm` is
/// empty; `auto` stands for the fastest algorithm. Returns the exit code, or an Error if the input
/// is bad. Requires: each setting's key is one of collective_arguments.cpp.
[[nodiscard]] Result<int> collective_command(const std::string& algorithm,
                                             const Settings& settings);

}  // namespace starling::program
