#include "starling/tools/repro/repro_data.hpp"

#include <nlohmann/json.hpp>

#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/sim/linear_learner.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the mean, its standard error, the minimum and the maximum as JSON.
Json figures(const Summary& values) {
  return {{"mean", values.mean},
          {"standard_error", standard_error(values)},
          {"min", values.min},
          {"max", values.max}};
}

/// Returns a setting and the figures of its runs as JSON. `runs` has one run for each seed.
Json setting_json(const SimulatedSetting& setting, const SimRuns& runs) {
  Json json{{"barrier", setting.barrier}, {"workers", setting.workers}};
  if (!setting.straggler.empty()) json["straggler"] = setting.straggler;
  json["recheck"] = setting.recheck;
  json["steps_mean"] = figures(mean_steps(runs));
  json["steps_sd"] = figures(over_runs(runs, [](const SimRun& run) { return run.steps.sd; }));
  json["steps_min"] = figures(over_runs(runs, [](const SimRun& run) { return run.steps.min; }));
  json["steps_median"] = figures(over_runs(runs, [](const SimRun& run) { return run.median; }));
  json["steps_max"] = figures(over_runs(runs, [](const SimRun& run) { return run.steps.max; }));
  json["waiting_share"] =
      figures(over_runs(runs, [](const SimRun& run) { return run.waiting_share; }));
  json["messages_a_step"] = figures(over_runs(runs, messages_a_step));
  return json;
}

}  // namespace

std::string runs_csv(const ExperimentRunner& runner) {
  TextTable table{{"barrier", "workers", "straggler", "recheck", "seed", "steps_mean", "steps_sd",
                   "steps_min", "steps_median", "steps_max", "waiting_share", "updates", "max_lag",
                   "messages"}};
  for (const auto& [setting, runs] : runner.all_runs())
    for (const SimRun& run : runs) {
      std::vector<std::string> row{setting.barrier, std::to_string(setting.workers),
                                   setting.straggler, setting.recheck, std::to_string(run.seed)};
      for (const double value :
           {run.steps.mean, run.steps.sd, run.steps.min, run.median, run.steps.max,
            run.waiting_share, static_cast<double>(run.updates), static_cast<double>(run.max_lag),
            static_cast<double>(run.messages.total())})
        row.push_back(print_number(value));
      table.rows.push_back(std::move(row));
    }
  return csv_text(table);
}

std::string learning_csv(const ExperimentRunner& runner) {
  TextTable table{{"barrier", "workers", "straggler", "seed", "seconds_to_error_0.1"}};
  for (const auto& [setting, runs] : runner.all_learning_runs())
    for (const LearningRun& run : runs.runs) {
      // The cell stays empty if the run did not reach the error.
      const auto time = time_to(run.errors, ExperimentRunner::error_goal);
      table.rows.push_back({setting.barrier, std::to_string(setting.workers), setting.straggler,
                            std::to_string(run.seed), time ? print_number(*time) : ""});
    }
  return csv_text(table);
}

TextTable claims_table(const ExperimentResults& results) {
  TextTable table{{"claim", "published", "here", "verdict"}, {}, true};
  for (const Claim& claim : results.claims)
    table.rows.push_back({claim.finding, claim.published, claim.here, print(claim.status)});
  return table;
}

void to_json(nlohmann::ordered_json& json, const Claim& claim) {
  json = {{"what", claim.finding},
          {"published", claim.published},
          {"here", claim.here},
          {"verdict", print(claim.status)}};
}

std::string summary_json(const ExperimentRunner& runner, const ExperimentResults& results) {
  // `seed` is the first seed; `seeds` is the number of consecutive seeds.
  Json json{{"version", version()},
            {"seed", runner.options().seed},
            {"seeds", runner.options().seeds},
            {"claims", results.claims}};
  for (const auto& [setting, runs] : runner.all_runs())
    json["settings"].push_back(setting_json(setting, runs));
  return json.dump(1) + "\n";
}

}  // namespace starling::program
