#include "starling/tools/run/flow_subcommands.hpp"

#include <utility>

#include "starling/tools/run/flows.hpp"

namespace starling::program {

FlowSubcommands::FlowCommand::FlowCommand(CLI::App& parent, FlowEntry entry,
                                          std::vector<KeyDescription> flow_keys,
                                          const std::string& summary_suffix)
    : flow(std::move(entry)),
      keys(std::move(flow_keys)),
      arguments(parent, flow.name, flow.summary + summary_suffix, keys) {
  arguments.command().add_arguments("FILE", files, "the same as --input FILE");
}

FlowSubcommands::FlowSubcommands(Command& parent, const Registry& registry, const KeysOf& keys_of,
                                 const std::string& summary_suffix, const std::string& footer)
    : parent_(parent) {
  parent.allow_one_subcommand();
  for (const FlowEntry& flow : all_flows(registry)) {
    commands_.push_back(
        std::make_unique<FlowCommand>(parent.app(), flow, keys_of(flow), summary_suffix));
    commands_.back()->arguments.command().set_footer(footer);
  }
}

Result<int> FlowSubcommands::run(const std::string& example, const Run& run) const {
  if (!parent_.has_chosen_subcommand())
    return parent_.missing_command_error("the flow to run is missing",
                                         ", as in " + parent_.call() + " " + example,
                                         "unknown flow '{}'");
  if (auto known = parent_.refuse_extras(); !known) return std::move(known).error();
  for (const auto& command : commands_) {
    if (!command->arguments.command().is_chosen()) continue;
    if (auto known = command->arguments.command().refuse_extras(); !known)
      return std::move(known).error();
    auto settings = command->arguments.settings();
    if (!settings) return settings.error();
    for (const std::string& file : command->files) settings->push_back({"input", file, "FILE"});
    return run(command->flow, *settings);
  }
  return Error{"no flow was chosen"};
}

}  // namespace starling::program
