/// The whole program `starling` as a function, for an executable of your own:
///
///     #include "starling/starling.hpp"
///
///     int main(int argc, char** argv) {
///       return starling::main(argc, argv, starling::Registry{}.model<Ring>("ring", "my model"));
///     }
///
/// The executable has all commands of `starling`, with your models, data and barriers beside the
/// built-in ones (registry.hpp). examples/07_own_program.cpp is such a program.
#pragma once

#include "starling/tools/registry/algorithm_of.hpp"
#include "starling/tools/registry/model_of.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling {

/// Runs the program and returns its exit code: 0 if it is done, 1 if the job failed, 2 if the input
/// is bad and nothing was started, 130 if it was interrupted. Handles SIGINT, SIGTERM and SIGHUP.
/// Call it once.
[[nodiscard]] int main(int argc, const char* const* argv, Registry registry = {});

}  // namespace starling
