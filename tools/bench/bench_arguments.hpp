/// The command line of `starling bench` and of its subcommands `kernels`, `train` and
/// `collectives`.
#pragma once

#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

class BenchArguments {
 public:
  /// `train_footer` is the beginning of the text at the end of the help of `bench train`.
  BenchArguments(CLI::App& program, const std::string& train_footer);

  [[nodiscard]] const Command& command() const { return bench_; }
  /// Runs the chosen subcommand. Requires: the user chose `bench`.
  [[nodiscard]] Result<int> run(const Registry& registry) const;

 private:
  [[nodiscard]] Result<int> run_kernels() const;
  [[nodiscard]] Result<int> run_collectives() const;
  [[nodiscard]] Result<int> run_train(const Registry& registry) const;

  Command bench_;
  FlagsCommand kernels_;
  FlagsCommand train_;
  FlagsCommand collectives_;
};

}  // namespace starling::program
