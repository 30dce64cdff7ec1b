#include "starling/tools/repro/repro_arguments.hpp"

#include "starling/tools/repro/training_keys.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

const std::vector<KeyForm>& psp_keys() {
  static const std::vector<KeyForm> keys{
      {"out", KeyKind::text, "FILE.html", "the report, one HTML file [psp.html]", "Options"},
      {"data", KeyKind::text, "DIR", "its data and plots [beside it, named after it: psp-data]",
       "Options"},
      {"markdown", KeyKind::text, "DIR", "also as a page of Markdown, with its pictures",
       "Options"},
      {"seeds", KeyKind::count, "N", "runs of each setting [20]", "Options"},
      {"seed", KeyKind::count, "N", "the first of them [1]", "Options"},
      {"threads", KeyKind::count, "N", "runs at the same time [one for each processor]", "Options"},
      {"quick", KeyKind::flag, "", "2 seeds, fewer settings: to see that all works", "Options"},
      {"quiet", KeyKind::flag, "", "no progress", "Options"}};
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
  repro_.app().require_subcommand(0, 1);
  psp_train_.command().app().footer(training_footer());
}

Result<int> ReproArguments::run(const Registry& registry) const {
  if (repro_.app().get_subcommands().empty())
    return repro_.without_command("what to reproduce is missing",
                                  ", as in " + repro_.call() + " psp",
                                  "'{}' is nothing that can be reproduced");
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
