#include "starling/tools/run/run_arguments.hpp"

#include <utility>

#include "starling/tools/run/flow_settings.hpp"
#include "starling/tools/run/flows.hpp"
#include "starling/tools/run/run_command.hpp"

namespace starling::program {

RunArguments::FlowCommand::FlowCommand(CLI::App& run, FlowEntry entry)
    : flow(std::move(entry)),
      keys(keys_of_flow(flow)),
      arguments(run, flow.name, flow.summary, keys) {
  arguments.command().add_arguments("FILE", files, "the same as --input FILE");
  arguments.command().set_footer(
      "\nThe result, or its first lines, goes to stdout; progress and a summary go to stderr.\n"
      "Exit codes: 0 done, 1 the flow failed, 2 bad input, 130 interrupted.");
}

RunArguments::RunArguments(CLI::App& program, const Registry& registry)
    : run_(program, "run", "process files by map-reduce: count, sort, join, rank, cluster") {
  run_.allow_one_subcommand();
  for (FlowEntry& flow : all_flows(registry))
    flows_.push_back(std::make_unique<FlowCommand>(run_.app(), std::move(flow)));
}

Result<int> RunArguments::run() const {
  if (!run_.has_chosen_subcommand())
    return run_.missing_command_error("the flow to run is missing",
                                      ", as in " + run_.call() + " wordcount --input FILE",
                                      "unknown flow '{}'");
  if (auto known = run_.refuse_extras(); !known) return std::move(known).error();
  for (const auto& command : flows_) {
    if (!command->arguments.command().is_chosen()) continue;
    if (auto known = command->arguments.command().refuse_extras(); !known)
      return std::move(known).error();
    auto settings = command->arguments.settings();
    if (!settings) return settings.error();
    for (const std::string& file : command->files) settings->push_back({"input", file, "FILE"});
    return run_command(command->flow, *settings);
  }
  return Error{"no flow was chosen"};
}

}  // namespace starling::program
