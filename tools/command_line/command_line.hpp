/// The command line: which command, with what. CLI11 does the reading and the help.
#pragma once

#include "starling/base/result.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Reads the arguments and runs their command; the exit code, or an error of the input.
[[nodiscard]] Result<int> run_command_line(int argc, const char* const* argv,
                                           const Registry& registry);

}  // namespace starling::program
