#include "starling/tools/chaos/chaos_arguments.hpp"

#include <string>
#include <utility>
#include <vector>

#include "starling/tools/job/keys.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

const std::vector<KeyForm>& chaos_keys() {
  static const std::vector<KeyForm> keys{
      {"seeds", KeyKind::text, "A..B", "the seeds to run, both ends too [1..1000]", "Options"},
      {"threads", KeyKind::count, "N", "how many run at once [as there are cores]", "Options"},
      {"replay", KeyKind::text, "FILE", "run this scenario in place of seeds", "Options"},
      {"out", KeyKind::text, "FILE", "where the scenario of a failure goes [chaos-SEED.txt]",
       "Options"},
      {"json", KeyKind::flag, "", "one JSON object", "Options"}};
  return keys;
}

}  // namespace

ChaosArguments::ChaosArguments(CLI::App& program)
    : arguments_(program, "chaos", "run replicated jobs through all that may go wrong, by seed",
                 chaos_keys()) {
  arguments_.command().app().footer(
      "\nEach seed draws a small job (mode, barrier, members, network) and what goes wrong in "
      "it:\n"
      "loss, duplication, reordering, cuts, freezes, crashes in the middle of an event, "
      "restarts,\n"
      "joins, leaves, wrong suspicions. It runs in virtual time; after each event the "
      "invariants\n"
      "are checked. The first failure is cut down and written to a file that --replay runs.\n"
      "Exit codes: 0 all held, 1 an invariant broke, 2 bad input, 130 interrupted.");
}

Result<int> ChaosArguments::run() const {
  const auto settings = arguments_.settings();
  if (!settings) return settings.error();
  ChaosOptions options;
  options.replay = text_of(*settings, "replay");
  for (const Setting& setting : *settings)
    if (!options.replay.empty() && setting.key != "replay" && setting.key != "json")
      return Error{setting.place + ": has no effect with --replay, which runs one scenario as " +
                   "it is; valid: one of them"};
  options.seeds = text_of(*settings, "seeds");
  options.out = text_of(*settings, "out");
  options.json = !text_of(*settings, "json").empty();
  if (auto put = put_count(options.threads, *settings, "threads", 1, 1024); !put)
    return std::move(put).error();
  return chaos_command(options);
}

}  // namespace starling::program
