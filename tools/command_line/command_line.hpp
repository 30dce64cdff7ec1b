/// Declares the program's commands and flags to CLI11, which parses them and prints the help.
#pragma once

#include "starling/base/result.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Parses the arguments and runs their command. Returns the exit code, or an error of the input.
[[nodiscard]] Result<int> run_command_line(int argc, const char* const* argv,
                                           const Registry& registry);

}  // namespace starling::program
