/// The command line of `starling repro` and of its commands, one for each report.
#pragma once

#include "starling/tools/job/arguments.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

class ReproArguments {
 public:
  explicit ReproArguments(CLI::App& program);

  [[nodiscard]] const Command& command() const { return repro_; }
  /// Requires: the command was chosen.
  [[nodiscard]] Result<int> run(const Registry& registry) const;

 private:
  [[nodiscard]] Result<int> run_psp() const;

  Command repro_;
  FlagArguments psp_;
  FlagArguments psp_train_;
};

}  // namespace starling::program
