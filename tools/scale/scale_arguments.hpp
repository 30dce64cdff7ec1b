/// The command line of `starling scale`.
#pragma once

#include <string>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"

namespace starling::program {

class ScaleArguments {
 public:
  explicit ScaleArguments(CLI::App& program);

  [[nodiscard]] const Command& command() const { return arguments_.command(); }
  /// Runs the command. Requires: the user chose `scale`.
  [[nodiscard]] Result<int> run() const;

 private:
  FlagsCommand arguments_;
  std::string net_;
};

}  // namespace starling::program
