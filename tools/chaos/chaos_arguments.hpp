/// The command line of `starling chaos`.
#pragma once

#include "starling/base/result.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"

namespace starling::program {

class ChaosArguments {
 public:
  explicit ChaosArguments(CLI::App& program);

  [[nodiscard]] const Command& command() const { return arguments_.command(); }
  /// Runs the command. Requires: the user chose `chaos`.
  [[nodiscard]] Result<int> run() const;

 private:
  FlagsCommand arguments_;
};

}  // namespace starling::program
