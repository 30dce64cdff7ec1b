#include "starling/tools/chaos/chaos_arguments.hpp"

#include <string>
#include <utility>
#include <vector>

#include "starling/tools/job/keys.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

const std::vector<KeyDescription>& chaos_keys() {
  static const std::vector<KeyDescription> keys{
      {"seeds", ValueType::text, "A..B", "the seeds to run, from A to B inclusive [1..1000]",
       "Options"},
      {"threads", ValueType::count, "N",
       "how many seeds run at the same time [one for each processor]", "Options"},
      {"replay", ValueType::text, "FILE", "run this scenario in place of seeds", "Options"},
      {"out", ValueType::text, "FILE",
       "the file to which the scenario of a failure is written [chaos-SEED.txt]", "Options"},
      {"json", ValueType::flag, "", "one JSON object", "Options"}};
  return keys;
}

}  // namespace

ChaosArguments::ChaosArguments(CLI::App& program)
    : arguments_(program, "chaos", "test replicated jobs under random faults, by seed",
                 chaos_keys()) {
  arguments_.command().set_footer(
      "\nEach seed draws a small job (mode, barrier, members, network) and the faults in it: "
      "loss,\n"
      "duplication, reordering, partitions, freezes, crashes in the middle of an event, "
      "restarts,\n"
      "joins, leaves, wrong suspicions. The job runs in virtual time; after each event the "
      "invariants\n"
      "are checked. The first failure is shrunk and written to a file that --replay runs.\n"
      "Exit codes: 0 all invariants held, 1 one was violated, 2 bad input, 130 interrupted.");
}

Result<int> ChaosArguments::run() const {
  const auto settings = arguments_.settings();
  if (!settings) return settings.error();
  ChaosOptions options;
  options.replay = text_of(*settings, "replay");
  for (const Setting& setting : *settings)
    if (!options.replay.empty() && setting.key != "replay" && setting.key != "json")
      return Error{setting.location + ": has no effect with --replay, which runs one scenario as " +
                   "it is; valid: one of the two"};
  options.seeds = text_of(*settings, "seeds");
  options.out = text_of(*settings, "out");
  options.json = !text_of(*settings, "json").empty();
  if (auto put = put_count(options.threads, *settings, "threads", 1, 1024); !put)
    return std::move(put).error();
  return chaos_command(options);
}

}  // namespace starling::program
