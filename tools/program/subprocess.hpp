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

/// Runs words[0], looked up in PATH, with the other words as arguments, to its end. Returns its
/// exit code, or 128 and the number of the signal that ended it. An Error where it cannot be
/// started.
[[nodiscard]] Result<int> run_program(std::vector<std::string> words,
                                      std::optional<StandardFiles> files = std::nullopt);

}  // namespace starling::program
