#include "starling/tools/command_line/advise_arguments.hpp"

#include <vector>

#include "starling/tools/cluster/step_recorder.hpp"
#include "starling/tools/command_line/advise_command.hpp"
#include "starling/tools/job/keys.hpp"

namespace starling::program {
namespace {

const std::vector<KeyDescription>& advise_keys() {
  static const std::vector<KeyDescription> all = [] {
    std::vector<KeyDescription> keys{
        {"barrier", ValueType::texts, "BARRIER",
         "a barrier to compare; repeatable, the strictest first [those of `repro barriers` that "
         "the workers can run]",
         "Options"},
        {"mode", ValueType::text, "MODE",
         "central | hybrid | peer: who keeps the steps [central]; barriers over all workers need "
         "central",
         "Options"},
        {"steps", ValueType::count, "N",
         "the virtual time of a run, in steps of the slowest worker [150]", "Options"},
        {"seeds", ValueType::count, "N", "runs of each barrier [10]", "Options"},
        {"seed", ValueType::count, "N", "the first of the seeds [1]", "Options"},
        {"threads", ValueType::count, "N", "runs at the same time [one for each processor]",
         "Options"},
        {"json", ValueType::flag, "", "one JSON object", "Options"},
        {"quiet", ValueType::flag, "", "show no progress", "Options"}};
    const auto recording = recording_options("Recording a job on nodes");
    keys.insert(keys.end(), recording.begin(), recording.end());
    return keys;
  }();
  return all;
}

}  // namespace

AdviseArguments::AdviseArguments(CLI::App& program)
    : arguments_(program, "advise", "show which barrier suits a cluster, from its step times",
                 advise_keys()) {
  arguments_.command().add_argument(
      "FILE", file_, "step times: CSV with the head worker,step,seconds, or a trace of train");
  arguments_.command().set_footer(
      "\nCSV: a row for each step: the worker's name, the number of the step, which rises from "
      "each "
      "row\nof a worker to the next, and how many seconds the step took without waiting at a "
      "barrier. Each\nline ends with a new line. At least 20 steps of each of 2 to 64 workers.\n"
      "A trace is the file of `train` or `submit --trace`; its intervals of waiting do not count.\n"
      "With --from instead of a FILE, records the steps of a job that runs on nodes.\n"
      "Simulates every message of a small job whose workers take the recorded times, in blocks of "
      "16\nconsecutive steps drawn at random, and compares how soon a noisy quadratic model "
      "reaches 1 % of\nits first loss: at a learning rate that bears stale updates (a third of the "
      "largest stable one),\nand at one that does not (nine tenths). The advice is the first at "
      "the small rate; barriers within\n5 % count as equal, and the least stale updates decide. "
      "The same seed gives the same advice.\n"
      "Exit codes: 0 done, 1 nothing could be written or no node answered, 2 bad input.");
}

Result<int> AdviseArguments::run(const Registry& registry) const {
  const auto settings = arguments_.settings();
  if (!settings) return settings.error();
  return advise_command(registry, file_, *settings);
}

}  // namespace starling::program
