/// The command `starling scale`. One thread calls it.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings.hpp"

namespace starling::program {

/// Predicts and simulates how the training of `net` scales. Returns the exit code, or an Error if
/// the input is bad. Requires: each setting's key is one of scale_arguments.cpp.
[[nodiscard]] Result<int> scale_command(const std::string& net, const Settings& settings);

}  // namespace starling::program
