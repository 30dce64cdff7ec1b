#include "starling/tools/repro/repro_arguments.hpp"

#include "starling/tools/repro/training_keys.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

const std::vector<KeyDescription>& psp_keys() {
  static const std::vector<KeyDescription> keys{
      {"out", ValueType::text, "FILE.html", "the report, one HTML file [psp.html]", "Options"},
      {"data", ValueType::text, "DIR",
       "the report's data and plots [a folder beside the report, named after it: psp-data]",
       "Options"},
      {"markdown", ValueType::text, "DIR",
       "write the report as a page of Markdown too, with its pictures", "Options"},
      {"seeds", ValueType::count, "N", "runs of each setting [20]", "Options"},
      {"seed", ValueType::count, "N", "the first of the seeds [1]", "Options"},
      {"threads", ValueType::count, "N", "runs at the same time [one for each processor]",
       "Options"},
      {"quick", ValueType::flag, "", "2 seeds and fewer settings, to see that everything works",
       "Options"},
      {"quiet", ValueType::flag, "", "show no progress", "Options"}};
  return keys;
}

}  // namespace

ReproArguments::ReproArguments(CLI::App& program)
    : repro_(program, "repro", "reproduce a paper's experiments as a report"),
      psp_(repro_.app(), "psp", "Probabilistic Synchronous Parallel: what the paper simulated",
           psp_keys()),
      psp_train_(repro_.app(), "psp-train",
                 "Probabilistic Synchronous Parallel: the paper's training run, live",
                 training_keys()) {
  repro_.allow_one_subcommand();
  psp_train_.command().set_footer(training_footer());
}

Result<int> ReproArguments::run(const Registry& registry) const {
  if (!repro_.has_chosen_subcommand())
    return repro_.missing_command_error("what to reproduce is missing",
                                        ", as in " + repro_.call() + " psp",
                                        "'{}' is no report that can be reproduced");
  for (const Command* command : {&repro_, &psp_.command(), &psp_train_.command()})
    if (command->is_chosen())
      if (auto known = command->refuse_extras(); !known) return std::move(known).error();
  if (psp_.command().is_chosen()) return run_psp();
  const auto settings = psp_train_.settings();
  return settings ? repro_psp_train_command(registry, *settings) : Result<int>{settings.error()};
}

Result<int> ReproArguments::run_psp() const {
  const auto settings = psp_.settings();
  if (!settings) return settings.error();
  ReproOptions options;
  if (const auto out = text_of(*settings, "out"); !out.empty()) options.out = out;
  options.data = text_of(*settings, "data");
  options.markdown = text_of(*settings, "markdown");
  options.quick = !text_of(*settings, "quick").empty();
  options.quiet = !text_of(*settings, "quiet").empty();
  if (options.quick) options.seeds = 2;
  if (auto put = put_count(options.seeds, *settings, "seeds", 1, 100'000); !put)
    return std::move(put).error();
  if (auto put = put_count(options.seed, *settings, "seed", 0, UINT64_MAX); !put)
    return std::move(put).error();
  if (auto put = put_count(options.threads, *settings, "threads", 1, 4096); !put)
    return std::move(put).error();
  return repro_psp_command(options);
}

}  // namespace starling::program
