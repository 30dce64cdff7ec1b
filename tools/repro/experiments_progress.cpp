#include <fmt/format.h>

#include "starling/tools/repro/experiments.hpp"

namespace starling::program {
namespace {

const std::vector<std::string>& barriers_of_figure_1() {
  static const std::vector<std::string> barriers{
      "bsp", "ssp:s=4", "ssp:s=5", "pbsp:beta=10", "pssp:s=4,beta=10", "pssp:s=5,beta=10", "asp"};
  return barriers;
}

/// Summarises over the runs the median of the workers' steps.
Summary medians(const SimRuns& runs) {
  return over_runs(runs, [](const SimRun& run) { return run.median; });
}

std::vector<SettingRow> rows_of(const std::vector<std::string>& barriers) {
  std::vector<SettingRow> rows;
  rows.reserve(barriers.size());
  for (const auto& barrier : barriers) rows.push_back({barrier, {.barrier = barrier}});
  return rows;
}

void request_progress_runs(ExperimentRunner& runner) {
  for (const auto& row : rows_of(barriers_of_figure_1())) runner.request(row.setting);
}

/// Adds the claim that a figure rises, or falls, from each barrier of published_five() to the next:
/// "53.7 < 202.1 < ...".
template <class Figure>
void add_order(const ExperimentRunner& runner, ExperimentResults& results,
               const std::string& finding, const std::string& published, Figure figure,
               bool is_rising) {
  std::string here;
  bool holds = true;
  double last = 0;
  for (const auto& barrier : published_five()) {
    const double value = figure(runner.runs_of({.barrier = barrier}));
    if (!here.empty()) {
      here += is_rising ? " < " : " > ";
      holds = holds && (is_rising ? last < value : last > value);
    }
    here += fmt::format("{:.1f}", value);
    last = value;
  }
  results.add(finding, published, here, holds);
}

Section report_progress(const ExperimentRunner& runner, ExperimentResults& results) {
  const auto steps = [&](const char* barrier) {
    return mean_steps(runner.runs_of({.barrier = barrier}));
  };
  results.add("Figure 1, BSP: steps", 55, steps("bsp"));
  results.add("Figure 1, SSP, staleness 4 as s=4: steps", 227, steps("ssp:s=4"));
  results.add("Figure 1, SSP, staleness 4 as s=5: steps", 227, steps("ssp:s=5"));
  results.add("Figure 1, pBSP, 10 sampled: steps", 259, steps("pbsp:beta=10"));
  results.add("Figure 1, pSSP, staleness 4 as s=4, 10 sampled: median of steps", 375,
              medians(runner.runs_of({.barrier = "pssp:s=4,beta=10"})));
  results.add("Figure 1, pSSP, staleness 4 as s=5, 10 sampled: median of steps", 375,
              medians(runner.runs_of({.barrier = "pssp:s=5,beta=10"})));
  results.add("Figure 1, ASP: steps", 402, steps("asp"));
  add_order(
      runner, results, "Progress: mean steps", "BSP < SSP < pBSP < pSSP < ASP",
      [](const SimRuns& runs) { return mean_steps(runs).mean; }, true);
  add_order(runner, results, "Spread: sd of the steps", "the same order", mean_sd, true);
  Plot plot{.name = "psp-steps",
            .title = "Steps after 40 s, 1,000 workers",
            .x = "steps",
            .y = "share of workers",
            .style = PlotStyle::steps};
  for (const auto& barrier : barriers_of_figure_1())
    plot.series.push_back(steps_cdf(barrier, runner.runs_of({.barrier = barrier})));
  return {"How far the workers come",
          {Paragraph{"1,000 workers run for 40 s of virtual time. The times of their steps are "
                     "exponential, 100 ms on average. At every arriving update, each waiting "
                     "worker draws again. Staleness s means that a worker waits if a worker that "
                     "it sees is more than s steps behind it. The published figure for staleness "
                     "4 looks like s=5, so the table has both."},
           progress_table(runner, "barrier", rows_of(barriers_of_figure_1())),
           results.add(std::move(plot),
                       "The share of workers that made at most this number of steps.")}};
}

/// Returns the barrier pBSP with each sample size of the experiment.
std::vector<std::string> pbsp_barriers(const ExperimentRunner& runner) {
  std::vector<std::string> barriers;
  for (const int beta :
       runner.options().quick ? std::vector{0, 4, 16} : std::vector{0, 1, 2, 4, 8, 16, 32, 64})
    barriers.push_back("pbsp:beta=" + std::to_string(beta));
  return barriers;
}

void request_sample_size_runs(ExperimentRunner& runner) {
  for (const auto& barrier : pbsp_barriers(runner)) runner.request({.barrier = barrier});
}

Section report_sample_size(const ExperimentRunner& runner, ExperimentResults& results) {
  const auto steps = [&](const char* barrier) {
    return mean_steps(runner.runs_of({.barrier = barrier}));
  };
  results.add("Figure 2, pBSP, 0 sampled: steps", 402, steps("pbsp:beta=0"));
  results.add("Figure 2, pBSP, 4 sampled: steps", 345, steps("pbsp:beta=4"));
  results.add("Figure 2, pBSP, 16 sampled: steps", 220, steps("pbsp:beta=16"));
  Plot plot{.name = "psp-samples",
            .title = "pBSP: steps after 40 s by sample size",
            .x = "steps",
            .y = "share of workers",
            .style = PlotStyle::steps};
  bool is_mean_falling = true;
  bool is_sd_falling = true;
  const SimRuns* last = nullptr;
  for (const auto& barrier : pbsp_barriers(runner)) {
    const SimRuns& runs = runner.runs_of({.barrier = barrier});
    plot.series.push_back(steps_cdf(barrier, runs));
    is_mean_falling =
        is_mean_falling && (last == nullptr || mean_steps(runs).mean < mean_steps(*last).mean);
    is_sd_falling = is_sd_falling && (last == nullptr || mean_sd(runs) < mean_sd(*last));
    last = &runs;
  }
  const auto word = [](bool is_always) { return std::string{is_always ? "always" : "not always"}; };
  results.add("Figure 2: a larger sample shifts the distribution left and tightens it",
              "mean and sd fall",
              "the mean falls " + word(is_mean_falling) + ", the sd falls " + word(is_sd_falling),
              is_mean_falling && is_sd_falling);
  return {"What the sample size does",
          {Paragraph{"The same setting under pBSP, with samples of 0 to 64 of the 999 other "
                     "workers. With a sample of 0, pBSP equals ASP."},
           progress_table(runner, "barrier", rows_of(pbsp_barriers(runner))),
           results.add(std::move(plot), "pBSP by sample size: the larger, the further left.")}};
}

void request_time_runs(ExperimentRunner& runner) {
  for (const auto& barrier : published_five()) runner.request({.barrier = barrier});
}

Plot plot_over_time(const ExperimentRunner& runner, Plot plot,
                    double (*figure)(const SimRun&, const sim::Point&)) {
  plot.x = "virtual time (s)";
  for (const auto& barrier : published_five())
    plot.series.push_back(over_time(barrier, runner.runs_of({.barrier = barrier}), figure));
  return plot;
}

Section report_time(const ExperimentRunner& runner, ExperimentResults& results) {
  const auto updates = [](const SimRun&, const sim::Point& point) {
    return static_cast<double>(point.updates);
  };
  const auto spread = [](const SimRun&, const sim::Point& point) {
    return static_cast<double>(point.max - point.min);
  };
  const auto waiting = [](const SimRun&, const sim::Point& point) { return point.waiting; };
  return {
      "What happens over time",
      {Paragraph{"The curves are means over the seeds. Updates arrive at a constant rate "
                 "under every barrier. Under ASP, the distance between the workers grows "
                 "without bound."},
       results.add(
           plot_over_time(
               runner,
               {.name = "psp-updates", .title = "Updates received by the server", .y = "updates"},
               updates),
           "Updates that the server has received."),
       results.add(
           plot_over_time(
               runner, {.name = "psp-spread", .title = "Fastest less slowest worker", .y = "steps"},
               spread),
           "How far the fastest worker is ahead of the slowest."),
       results.add(
           plot_over_time(
               runner,
               {.name = "psp-waiting", .title = "Waiting at the barrier", .y = "share of workers"},
               waiting),
           "The share of the workers that wait at that moment.")}};
}

}  // namespace

Experiment progress_experiment() { return {request_progress_runs, report_progress}; }
Experiment sample_size_experiment() { return {request_sample_size_runs, report_sample_size}; }
Experiment time_experiment() { return {request_time_runs, report_time}; }

}  // namespace starling::program
