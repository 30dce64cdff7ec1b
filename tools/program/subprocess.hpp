/// Runs other programs. Any thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

namespace starling::program {

/// The standard input, output and error of another program: descriptors of this process.
using StandardFiles = std::array<int, 3>;

/// Runs the program words[0], which is looked up in PATH, with the other words as arguments, and
/// waits for its end. Returns its exit code, or 128 plus the number of the signal that ended it.
/// Returns an Error if it cannot be started.
[[nodiscard]] Result<int> run_program(std::vector<std::string> words,
                                      std::optional<StandardFiles> files = std::nullopt);

}  // namespace starling::program
