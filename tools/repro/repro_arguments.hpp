/// The command line of `starling repro` and of its subcommands `psp`, `psp-train`, `barriers` and
/// `exchanges`, each of which makes a report.
#pragma once

#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

class ReproArguments {
 public:
  explicit ReproArguments(CLI::App& program);

  [[nodiscard]] const Command& command() const { return repro_; }
  /// Runs the chosen subcommand. Requires: the user chose `repro`.
  [[nodiscard]] Result<int> run(const Registry& registry) const;

 private:
  [[nodiscard]] Result<int> run_psp() const;
  [[nodiscard]] Result<int> run_barriers(const Registry& registry) const;
  [[nodiscard]] Result<int> run_exchanges(const Registry& registry) const;

  Command repro_;
  FlagsCommand psp_;
  FlagsCommand psp_train_;
  FlagsCommand barriers_;
  FlagsCommand exchanges_;
};

}  // namespace starling::program
