/// Runs other programs. Thread-safe.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// The file descriptors of this process that become another program's standard input, output and
/// error.
using StandardFiles = std::array<int, 3>;

/// Runs the program command[0], which is looked up in PATH, with the other elements as arguments,
/// and waits until it ends. Returns its exit code, or 128 plus the number of the signal that ended
/// it. Returns an Error if the program cannot be started. Without `files`, the program shares the
/// standard files of this process.
[[nodiscard]] Result<int> run_program(std::vector<std::string> command,
                                      std::optional<StandardFiles> files = std::nullopt);

}  // namespace starling::program
