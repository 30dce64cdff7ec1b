#include <nlohmann/json.hpp>

#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/repro/barriers/study_report.hpp"
#include "starling/tools/repro/repro_data.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

std::string print_if_any(const std::optional<double>& number) {
  return number ? print_number(*number) : std::string{};
}

std::string mean_if_any(const std::optional<Summary>& values) {
  return values ? print_number(values->mean) : std::string{};
}

}  // namespace

std::string study_runs_csv(const BarrierStudy& study) {
  TextTable table{{"cluster", "barrier", "seed", "updates", "waiting_share", "staleness", "max_lag",
                   "seconds_small_rate", "seconds_large_rate"}};
  for (const StudiedCluster& cluster : study.clusters)
    for (const BarrierTrials& runs : cluster.runs)
      for (std::size_t i = 0; i < runs.trials.size(); ++i) {
        const Trial& trial = runs.trials[i];
        table.rows.push_back({cluster.name, barrier::print(runs.barrier),
                              std::to_string(study.options.seed + i), print_number(trial.updates),
                              print_number(trial.waiting_share), print_number(trial.staleness),
                              print_number(trial.max_lag), print_if_any(trial.seconds_to_loss[0]),
                              print_if_any(trial.seconds_to_loss[1])});
      }
  return csv_text(table);
}

std::string live_csv(const BarrierStudy& study) {
  TextTable table{{"barrier", "delay", "seconds", "updates", "simulated_updates", "waiting_share",
                   "simulated_waiting_share", "max_lag", "overhead_s"}};
  for (const LiveComparison& run : study.live)
    table.rows.push_back({barrier::print(run.barrier), run.delay, print_number(run.seconds),
                          print_number(run.updates), print_number(run.simulated.updates.mean),
                          print_number(run.waiting_share),
                          print_number(run.simulated.waiting_share.mean), print_number(run.max_lag),
                          print_number(run.overhead_s)});
  return csv_text(table);
}

std::string map_csv(const BarrierStudy& study) {
  TextTable table{{"workers", "straggler_share", "slowness", "jitter", "barrier", "updates",
                   "waiting_share", "staleness", "max_lag", "seconds_small_rate",
                   "seconds_large_rate"}};
  for (const WinnerMapCell& cell : study.map)
    for (const BarrierFigures& barrier : cell.barriers)
      table.rows.push_back(
          {std::to_string(cell.cluster.workers), print_number(cell.cluster.straggler_share),
           print_number(cell.cluster.slowness), print_number(cell.cluster.jitter),
           barrier::print(barrier.barrier), print_number(barrier.updates.mean),
           print_number(barrier.waiting_share.mean), print_number(barrier.staleness.mean),
           print_number(barrier.max_lag), mean_if_any(barrier.seconds_to_loss[0]),
           mean_if_any(barrier.seconds_to_loss[1])});
  return csv_text(table);
}

std::string study_json(const BarrierStudy& study, const std::vector<ComparedClaim>& claims) {
  Json json{{"version", version()}, {"seed", study.options.seed}, {"seeds", study.options.seeds}};
  json["claims"] = claims;
  for (const LiveComparison& run : study.live)
    json["live"].push_back({{"barrier", barrier::print(run.barrier)},
                            {"delay", run.delay},
                            {"seconds", run.seconds},
                            {"updates", run.updates},
                            {"simulated_updates", run.simulated.updates.mean},
                            {"within_5_percent", run.agrees()}});
  return json.dump(1) + "\n";
}

}  // namespace starling::program
