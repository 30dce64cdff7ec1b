/// Declares the program's commands and flags to CLI11, which parses them and prints the help.
#pragma once

#include "starling/base/result.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Parses the arguments and runs the command that they name. Returns its exit code, or an Error if
/// the user's input is invalid.
[[nodiscard]] Result<int> run_command_line(int argc, const char* const* argv,
                                           const Registry& registry);

}  // namespace starling::program
