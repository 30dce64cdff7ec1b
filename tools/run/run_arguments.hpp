/// The command line of `starling run` and of its subcommands, one for each flow.
#pragma once

#include "starling/base/result.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/run/flow_subcommands.hpp"

namespace starling::program {

class RunArguments {
 public:
  RunArguments(CLI::App& program, const Registry& registry);

  /// Runs the chosen flow. Requires: the user chose `run`.
  [[nodiscard]] Result<int> run() const;

 private:
  Command run_;
  FlowSubcommands flows_;
};

}  // namespace starling::program
