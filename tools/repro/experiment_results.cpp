#include "starling/tools/repro/experiment_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// The largest relative difference from a published number with which a claim counts as reproduced:
/// the error with which the number was read off its plot.
constexpr double reproduced_max = 0.03;
/// The largest relative difference with which a claim counts as close.
constexpr double close_max = 0.10;

double mean_of(const SimRuns& runs, const std::function<double(const SimRun&)>& figure) {
  return over_runs(runs, figure).mean;
}

/// Returns the spread of the workers' steps, like "19.8, 338-471": the mean over the seeds of the
/// standard deviation, and the fewest and the most steps of a worker under any seed.
std::string spread_text(const SimRuns& runs) {
  return fmt::format("{:.1f}, {:.0f}-{:.0f}", mean_sd(runs),
                     over_runs(runs, [](const SimRun& run) { return run.steps.min; }).min,
                     over_runs(runs, [](const SimRun& run) { return run.steps.max; }).max);
}

}  // namespace

std::string print(ClaimStatus status) {
  switch (status) {
    case ClaimStatus::reproduced:
      return "reproduced";
    case ClaimStatus::close:
      return "close";
    case ClaimStatus::not_reproduced:
      return "not reproduced";
  }
  return {};
}

Picture ExperimentResults::add(Plot plot, const std::string& caption) {
  Picture picture{plot.name, caption, {}};
  plots.push_back(std::move(plot));
  return picture;
}

void ExperimentResults::add(const std::string& finding, const std::string& published,
                            const std::string& here, bool is_reproduced) {
  claims.push_back({finding, published, here,
                    is_reproduced ? ClaimStatus::reproduced : ClaimStatus::not_reproduced});
}

void ExperimentResults::add(const std::string& finding, double published, const Summary& here) {
  const double difference = std::abs(here.mean / published - 1);
  claims.push_back({finding, print_number(published), with_error(here),
                    difference <= reproduced_max ? ClaimStatus::reproduced
                    : difference <= close_max    ? ClaimStatus::close
                                                 : ClaimStatus::not_reproduced});
}

std::size_t ExperimentResults::reproduced() const {
  return static_cast<std::size_t>(
      std::ranges::count(claims, ClaimStatus::reproduced, &Claim::status));
}

std::string with_error(const Summary& values, int digits) {
  const auto mean = fmt::format("{:.{}f}", values.mean, digits);
  return values.count < 2 ? mean
                          : fmt::format("{} ± {:.{}f}", mean, standard_error(values), digits);
}

Summary mean_steps(const SimRuns& runs) {
  return over_runs(runs, [](const SimRun& run) { return run.steps.mean; });
}

double mean_sd(const SimRuns& runs) {
  return mean_of(runs, [](const SimRun& run) { return run.steps.sd; });
}

TextTable progress_table(const ExperimentRunner& runner, const std::string& head,
                         const std::vector<SettingRow>& rows) {
  TextTable table{{head, "steps", "sd", "min", "median", "max", "waiting", "messages a step"}};
  for (const auto& [label, setting] : rows) {
    const SimRuns& runs = runner.runs_of(setting);
    table.rows.push_back(
        {label, with_error(mean_steps(runs)), fmt::format("{:.1f}", mean_sd(runs)),
         fmt::format("{:.0f}",
                     over_runs(runs, [](const SimRun& run) { return run.steps.min; }).min),
         fmt::format("{:.1f}", mean_of(runs, [](const SimRun& run) { return run.median; })),
         fmt::format("{:.0f}",
                     over_runs(runs, [](const SimRun& run) { return run.steps.max; }).max),
         fmt::format("{:.1f} %",
                     100 * mean_of(runs, [](const SimRun& run) { return run.waiting_share; })),
         with_error(over_runs(runs, messages_a_step), 2)});
  }
  return table;
}

void request(ExperimentRunner& runner, const Sweep& sweep) {
  for (const auto& barrier : sweep.barriers)
    for (const double value : sweep.values) runner.request(sweep.setting(barrier, value));
}

std::vector<Series> sweep_series(const ExperimentRunner& runner, const Sweep& sweep) {
  std::vector<Series> curves;
  for (const auto& barrier : sweep.barriers) {
    Series series{.name = barrier};
    for (const double value : sweep.values) {
      const auto steps = mean_steps(runner.runs_of(sweep.setting(barrier, value)));
      series.points.push_back({value, steps.mean, standard_error(steps)});
    }
    curves.push_back(std::move(series));
  }
  return curves;
}

TextTable sweep_table(const ExperimentRunner& runner, const std::string& head, const Sweep& sweep,
                      const std::string& unit) {
  TextTable table{{head}};
  for (const auto& barrier : sweep.barriers) table.head.push_back(barrier);
  for (const double value : sweep.values) {
    std::vector<std::string> row{print_number(value) + unit};
    for (const auto& barrier : sweep.barriers) {
      const SimRuns& runs = runner.runs_of(sweep.setting(barrier, value));
      row.push_back(with_error(mean_steps(runs)) + " (" + spread_text(runs) + ")");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace starling::program
