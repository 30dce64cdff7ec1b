#include "starling/tools/command_line/submit_flow_arguments.hpp"

#include <algorithm>
#include <utility>

#include "starling/tools/cluster/flow_commands.hpp"

namespace starling::program {
namespace {

/// The command has the name that a user writes, so that its help and its errors show this name. The
/// name has a space: no argument of a user is equal to it, unless the user puts it in quotes.
constexpr const char* command_name = "submit --flow";

}  // namespace

SubmitFlowArguments::SubmitFlowArguments(CLI::App& program, const Registry& registry)
    : command_(program, "submit-flow", "run a flow on the nodes of a cluster"),
      flows_(command_, registry, submit_flow_options, ", on the nodes of a cluster",
             "\nEvery node must see the files by the same paths. The result, or its first lines, "
             "goes to stdout;\nprogress and a summary go to stderr. Ctrl-C stops the job.\n"
             "Exit codes: 0 done, 1 the flow failed, 2 bad input, 130 interrupted.") {
  command_.hide_as(command_name);
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
  return flows_.run("wordcount --to HOST:PORT --input FILE",
                    [&registry](const FlowEntry& flow, const Settings& settings) {
                      return submit_flow_command(registry, flow, settings);
                    });
}

}  // namespace starling::program
