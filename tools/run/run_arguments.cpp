#include "starling/tools/run/run_arguments.hpp"

#include <utility>

#include "starling/tools/run/flows.hpp"
#include "starling/tools/run/run_command.hpp"

namespace starling::program {
namespace {

/// Returns the flags that all flows have, followed by those of `flow`.
std::vector<KeyDescription> keys_of_flow(const FlowEntry& flow) {
  std::vector<KeyDescription> keys{
      {"input", ValueType::texts, "FILE", "a text file, plain or gzip; repeat it for more",
       "Options"},
      {"output", ValueType::text, "FOLDER",
       "write the result as files of a new folder, which appears when they are complete [the first "
       "lines on stdout]",
       "Options"},
      {"lines", ValueType::count, "N", "how many lines stdout shows without --output [20]",
       "Options"},
      {"workers", ValueType::count, "N",
       "threads that compute parts, to 32; the result is the same with any number [one for each "
       "processor]",
       "Options"},
      {"memory", ValueType::text, "SIZE",
       "memory for records that are shuffled or cached, such as 512MB; what does not fit is "
       "spilled to the disk [1GiB]",
       "Options"},
      {"spill", ValueType::text, "FOLDER",
       "the folder for spilled data [the system's, for temporary files]", "Options"},
      {"parts", ValueType::count, "N", "parts of what is shuffled, and files of the result [16]",
       "Options"},
      {"json", ValueType::flag, "", "one JSON object on stdout", "Options"},
      {"quiet", ValueType::flag, "", "show no progress and no summary", "Options"}};
  for (const FlowOption& option : flow.options)
    keys.push_back({option.name, option.value_name.empty() ? ValueType::flag : ValueType::text,
                    option.value_name, option.help, "Options of " + flow.name});
  return keys;
}

}  // namespace

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
