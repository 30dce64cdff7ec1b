#include <fmt/format.h>

#include <thread>

#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/repro/experiments.hpp"
#include "starling/tools/repro/report_outputs.hpp"
#include "starling/tools/repro/repro_data.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {
namespace {

/// The name of the Markdown page.
constexpr const char* page_name = "repro-psp.md";

ReportOutputs outputs_of(const ReproOptions& options) {
  return {options.out, options.data, options.markdown, page_name};
}

Section claims_section(const ExperimentResults& results, const ExperimentOptions& options) {
  return {"Published and here",
          {Paragraph{fmt::format(
               "{} of {} claims are reproduced. Every figure here is a mean over {} ({} to "
               "{}), with its standard error. The published figures were read off plots. "
               "So a number counts as reproduced if it is within 3 % of the published one, "
               "and as close if it is within 10 %.",
               results.reproduced(), results.claims.size(), print_count(options.seeds, "seed"),
               options.seed, options.seed + (options.seeds - 1))},
           claims_table(results)}};
}

Section closing_section(const ExperimentOptions& options) {
  return {"How this was made",
          {Paragraph{fmt::format(
              "starling {} made the whole page with this command: starling repro psp "
              "--seed {} --seeds {}{}. The same seeds give the same figures on every "
              "machine. Source: Wang, Catterall, Mortier, Probabilistic Synchronous "
              "Parallel, arXiv 1709.07772.",
              version(), options.seed, options.seeds, options.quick ? " --quick" : "")}}};
}

Document document_of(const ExperimentRunner& runner, ExperimentResults& results) {
  Document document{"Probabilistic Synchronous Parallel, reproduced", {}};
  for (const Experiment& experiment : psp_experiments())
    document.sections.push_back(experiment.report(runner, results));
  document.sections.insert(document.sections.begin(), claims_section(results, runner.options()));
  document.sections.push_back(closing_section(runner.options()));
  return document;
}

}  // namespace

Result<int> repro_psp_command(const ReproOptions& options) {
  if (options.seeds - 1 > UINT64_MAX - options.seed)
    return Error{"--seeds: " + std::to_string(options.seeds) + " seeds from " +
                 std::to_string(options.seed) + " on exceed the largest seed, " +
                 std::to_string(UINT64_MAX)};
  auto folders = prepare_report(outputs_of(options),
                                {"runs.csv", "learning.csv", "claims.csv", "summary.json"});
  if (!folders) return std::move(folders).error();
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  ExperimentRunner runner{{.seed = options.seed,
                           .seeds = options.seeds,
                           .threads = options.threads > 0 ? options.threads : processors,
                           .quick = options.quick,
                           .quiet = options.quiet}};
  for (const Experiment& experiment : psp_experiments()) experiment.request_runs(runner);
  runner.run();
  ExperimentResults results;
  Document document = document_of(runner, results);
  const DataFiles files{{"runs.csv", runs_csv(runner)},
                        {"learning.csv", learning_csv(runner)},
                        {"claims.csv", csv_text(claims_table(results))},
                        {"summary.json", summary_json(runner, results)}};
  return finish_report(outputs_of(options), files, document, results.plots);
}

}  // namespace starling::program
