/// The program's name in its help and its messages.
#pragma once

#include <string>

namespace starling::program {

/// Takes the last part of argv[0]; where that is empty, the name stays. Call before any thread
/// runs.
void set_program_name(const char* argv0);

/// "starling" where nothing else was set.
[[nodiscard]] const std::string& program_name();

}  // namespace starling::program
