/// The command line of `starling collective`.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"

namespace starling::program {

class CollectiveArguments {
 public:
  explicit CollectiveArguments(CLI::App& program);

  [[nodiscard]] const Command& command() const { return arguments_.command(); }
  /// Runs the command. Requires: the user chose `collective`.
  [[nodiscard]] Result<int> run() const;

 private:
  FlagsCommand arguments_;
  std::string algorithm_;
};

}  // namespace starling::program
