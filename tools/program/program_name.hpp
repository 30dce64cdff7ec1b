/// The program's name in its help and its messages, and a function that prints errors with it.
#pragma once

#include <string>

namespace starling::program {

/// Sets the name to the last part of argv[0], unless that is empty. Call before any thread runs.
void set_program_name(const char* argv0);

/// Returns the name that was set, else "starling".
[[nodiscard]] const std::string& program_name();

/// Prints "<program's name>: <message>" on stderr.
void print_error(const std::string& message);

}  // namespace starling::program
