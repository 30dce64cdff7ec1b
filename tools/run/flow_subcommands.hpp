/// The commands of flows: one for each flow, below a command that the user writes before its name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

class FlowSubcommands {
 public:
  /// Returns the flags of a flow.
  using KeysOf = std::function<std::vector<KeyDescription>(const FlowEntry& flow)>;
  /// Runs a flow with the settings of its flags and its positional arguments.
  using Run = std::function<Result<int>(const FlowEntry& flow, const Settings& settings)>;

  /// Declares the commands below `parent`, which must outlive this object. `summary_suffix` ends
  /// their summaries, and `footer` ends their help.
  FlowSubcommands(Command& parent, const Registry& registry, const KeysOf& keys_of,
                  const std::string& summary_suffix, const std::string& footer);

  /// Calls `run` for the chosen flow. If the user chose none, the error shows `example` as what
  /// comes after the parent's name.
  [[nodiscard]] Result<int> run(const std::string& example, const Run& run) const;

 private:
  struct FlowCommand {
    FlowCommand(CLI::App& parent, FlowEntry entry, std::vector<KeyDescription> flow_keys,
                const std::string& summary_suffix);

    FlowEntry flow;
    std::vector<KeyDescription> keys;
    FlagsCommand arguments;
    /// The positional arguments, which are inputs too.
    std::vector<std::string> files;
  };

  const Command& parent_;
  /// Pointers, because CLI11 keeps references to the values of a command, which must not move.
  std::vector<std::unique_ptr<FlowCommand>> commands_;
};

}  // namespace starling::program
