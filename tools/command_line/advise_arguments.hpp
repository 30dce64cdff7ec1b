/// The command line of `starling advise`.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

class AdviseArguments {
 public:
  explicit AdviseArguments(CLI::App& program);

  [[nodiscard]] const Command& command() const { return arguments_.command(); }
  /// Runs the command. Requires: the user chose `advise`.
  [[nodiscard]] Result<int> run(const Registry& registry) const;

 private:
  FlagsCommand arguments_;
  std::string file_;
};

}  // namespace starling::program
