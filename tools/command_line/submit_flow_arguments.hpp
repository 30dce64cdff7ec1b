/// The command line of `submit --flow NAME`: a command of its own for each flow, because the flags
/// of a command must be declared before they are read. The help of the program does not list it.
#pragma once

#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"
#include "starling/tools/run/flow_subcommands.hpp"

namespace starling::program {

class SubmitFlowArguments {
 public:
  SubmitFlowArguments(CLI::App& program, const Registry& registry);

  /// If `words`, the arguments of the program, call `submit` with the flag `--flow NAME`, turns
  /// them into those that call this command with the subcommand NAME.
  static void rewrite(std::vector<std::string>& words);

  /// True if the word is the name of this command, which only rewrite() makes.
  [[nodiscard]] bool has_name(const std::string& word) const { return command_.name() == word; }
  /// Submits the chosen flow. Requires: the user chose this command.
  [[nodiscard]] Result<int> run(const Registry& registry) const;

 private:
  Command command_;
  FlowSubcommands flows_;
};

}  // namespace starling::program
