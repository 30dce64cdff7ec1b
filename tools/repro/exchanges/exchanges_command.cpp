#include "starling/tools/repro/live_commands.hpp"

#include <fmt/format.h>

#include "starling/base/text.hpp"
#include "starling/tools/repro/exchanges/exchange_report.hpp"
#include "starling/tools/repro/report_outputs.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {

Result<int> repro_exchanges_command(const Registry& registry, const LiveReproOptions& all) {
  const ReproOptions& options = all.report;
  const ReportOutputs outputs{options.out, options.data, options.markdown, "repro-exchanges.md"};
  const auto folders = prepare_report(outputs, {"learning.csv", "claims.csv", "summary.json"});
  if (!folders) return folders.error();
  const auto study = make_exchange_study(registry, {.seed = options.seed,
                                                    .seeds = options.seeds,
                                                    .live = all.live,
                                                    .quick = options.quick,
                                                    .quiet = options.quiet});
  if (!study) {
    print_error(study.error().message);
    return job_failed;
  }
  ExchangeReport report = report_of(*study, flags_of(all));
  const DataFiles files{{"learning.csv", learning_csv(*study)},
                        {"claims.csv", csv_text(compared_claims_table(report.claims))},
                        {"summary.json", study_json(*study, report.claims)}};
  return finish_report(outputs, files, report.document, report.plots);
}

}  // namespace starling::program
