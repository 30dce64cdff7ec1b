#include <fmt/format.h>

#include <thread>

#include "starling/base/text.hpp"
#include "starling/tools/report/report_folder.hpp"
#include "starling/tools/report/table.hpp"
#include "starling/tools/repro/barriers/study_report.hpp"
#include "starling/tools/repro/live_commands.hpp"
#include "starling/tools/repro/report_outputs.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {

Result<int> repro_barriers_command(const Registry& registry, const LiveReproOptions& all) {
  const ReproOptions& options = all.report;
  const ReportOutputs outputs{options.out, options.data, options.markdown, "repro-barriers.md"};
  const auto folders =
      prepare_report(outputs, {"runs.csv", "live.csv", "map.csv", "claims.csv", "summary.json"});
  if (!folders) return folders.error();
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  const auto study =
      make_study(registry, {.seed = options.seed,
                            .seeds = options.seeds,
                            .threads = options.threads > 0 ? options.threads : processors,
                            .live = all.live,
                            .quick = options.quick,
                            .quiet = options.quiet});
  if (!study) {
    print_error(study.error().message);
    return job_failed;
  }
  StudyReport report = report_of(*study, flags_of(all));
  const DataFiles files{{"runs.csv", study_runs_csv(*study)},
                        {"live.csv", live_csv(*study)},
                        {"map.csv", map_csv(*study)},
                        {"claims.csv", csv_text(compared_claims_table(report.claims))},
                        {"summary.json", study_json(*study, report.claims)}};
  return finish_report(outputs, files, report.document, report.plots);
}

}  // namespace starling::program
