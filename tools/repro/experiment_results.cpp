#include "starling/tools/repro/experiment_results.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <cmath>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// How far a published figure can be misread, and how far off still counts as close, relative to
/// it.
constexpr double misread = 0.03;
constexpr double near = 0.10;

double mean_of(const SimRuns& runs, const std::function<double(const SimRun&)>& figure) {
  return over_runs(runs, figure).mean;
}

/// "19.8, 338-471": the spread of the workers, as a mean over the seeds and as the limits of all.
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

void ExperimentResults::add(const std::string& what, const std::string& published,
                            const std::string& here, bool holds) {
  claims.push_back(
      {what, published, here, holds ? ClaimStatus::reproduced : ClaimStatus::not_reproduced});
}

void ExperimentResults::add(const std::string& what, double published, const Summary& here) {
  const double off = std::abs(here.mean / published - 1);
  claims.push_back({what, print_number(published), with_error(here),
                    off <= misread ? ClaimStatus::reproduced
                    : off <= near  ? ClaimStatus::close
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
                         const std::vector<WorldRow>& rows) {
  TextTable table{{head, "steps", "sd", "min", "median", "max", "waiting", "messages a step"}};
  for (const auto& [label, world] : rows) {
    const SimRuns& runs = runner.of(world);
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

void want(ExperimentRunner& runner, const Sweep& sweep) {
  for (const auto& barrier : sweep.barriers)
    for (const double value : sweep.values) runner.want(sweep.world(barrier, value));
}

std::vector<Series> sweep_series(const ExperimentRunner& runner, const Sweep& sweep) {
  std::vector<Series> all;
  for (const auto& barrier : sweep.barriers) {
    Series series{.name = barrier};
    for (const double value : sweep.values) {
      const auto steps = mean_steps(runner.of(sweep.world(barrier, value)));
      series.points.push_back({value, steps.mean, standard_error(steps)});
    }
    all.push_back(std::move(series));
  }
  return all;
}

TextTable sweep_table(const ExperimentRunner& runner, const std::string& head, const Sweep& sweep,
                      const std::string& unit) {
  TextTable table{{head}};
  for (const auto& barrier : sweep.barriers) table.head.push_back(barrier);
  for (const double value : sweep.values) {
    std::vector<std::string> row{print_number(value) + unit};
    for (const auto& barrier : sweep.barriers) {
      const SimRuns& runs = runner.of(sweep.world(barrier, value));
      row.push_back(with_error(mean_steps(runs)) + " (" + spread_text(runs) + ")");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace starling::program
