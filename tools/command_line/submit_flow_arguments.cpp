#include "starling/tools/command_line/submit_flow_arguments.hpp"

#include <algorithm>
#include <utility>

#include "starling/tools/cluster/flow_commands.hpp"
#include "starling/tools/run/flows.hpp"

namespace starling::program {
namespace {

/// The name of the command is what a user writes, so that its help and its errors show that. No
/// user's word is equal to it, except in quotes.
constexpr const char* command_name = "submit --flow";

}  // namespace

SubmitFlowArguments::FlowCommand::FlowCommand(CLI::App& submit, FlowEntry entry)
    : flow(std::move(entry)),
      keys(submit_flow_options(flow)),
      arguments(submit, flow.name, flow.summary + ", on the nodes of a cluster", keys) {
  arguments.command().add_arguments("FILE", files, "the same as --input FILE");
  arguments.command().set_footer(
      "\nEvery node must see the files by the same paths. The result, or its first lines, goes to "
      "stdout;\nprogress and a summary go to stderr. Ctrl-C stops the job.\n"
      "Exit codes: 0 done, 1 the flow failed, 2 bad input, 130 interrupted.");
}

SubmitFlowArguments::SubmitFlowArguments(CLI::App& program, const Registry& registry)
    : command_(program, "submit-flow", "run a flow on the nodes of a cluster") {
  command_.hide_as(command_name);
  command_.allow_one_subcommand();
  for (FlowEntry& flow : all_flows(registry))
    flows_.push_back(std::make_unique<FlowCommand>(command_.app(), std::move(flow)));
}

void SubmitFlowArguments::rewrite(std::vector<std::string>& words) {
  const bool asks_for_help = !words.empty() && words.front() == "help";
  const auto submit = words.begin() + (asks_for_help ? 1 : 0);
  if (submit == words.end() || *submit != "submit") return;
  const std::string flag = "--flow";
  const std::string flag_with_value = flag + "=";
  const auto end = std::find(submit, words.end(), "--");
  for (auto at = submit + 1; at != end; ++at) {
    const bool has_value = at->starts_with(flag_with_value);
    if (!has_value && *at != flag) continue;
    const bool has_name = has_value || (at + 1 != end && !(at + 1)->starts_with('-'));
    if (!has_name) return;
    std::string name = has_value ? at->substr(flag_with_value.size()) : *(at + 1);
    words.erase(at, at + (has_value ? 1 : 2));
    *submit = command_name;
    words.insert(submit + 1, std::move(name));
    return;
  }
}

Result<int> SubmitFlowArguments::run(const Registry& registry) const {
  if (!command_.has_chosen_subcommand())
    return command_.missing_command_error(
        "the flow to run is missing",
        ", as in " + command_.call() + " wordcount --to HOST:PORT --input FILE",
        "unknown flow '{}'");
  if (auto known = command_.refuse_extras(); !known) return std::move(known).error();
  for (const auto& command : flows_) {
    if (!command->arguments.command().is_chosen()) continue;
    if (auto known = command->arguments.command().refuse_extras(); !known)
      return std::move(known).error();
    auto settings = command->arguments.settings();
    if (!settings) return settings.error();
    for (const std::string& file : command->files) settings->push_back({"input", file, "FILE"});
    return submit_flow_command(registry, command->flow, *settings);
  }
  return Error{"no flow was chosen"};
}

}  // namespace starling::program
