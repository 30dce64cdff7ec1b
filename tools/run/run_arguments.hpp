/// The command line of `starling run` and of its subcommands, one for each flow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

class RunArguments {
 public:
  RunArguments(CLI::App& program, const Registry& registry);

  /// Runs the chosen flow. Requires: the user chose `run`.
  [[nodiscard]] Result<int> run() const;

 private:
  /// The command of one flow.
  struct FlowCommand {
    FlowCommand(CLI::App& run, FlowEntry entry);

    FlowEntry flow;
    std::vector<KeyDescription> keys;
    FlagsCommand arguments;
    /// The positional arguments, which are inputs too.
    std::vector<std::string> files;
  };

  Command run_;
  /// CLI11 keeps references to the values of a command.
  std::vector<std::unique_ptr<FlowCommand>> flows_;
};

}  // namespace starling::program
