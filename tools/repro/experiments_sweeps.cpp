#include <fmt/format.h>

#include <algorithm>

#include "starling/base/text.hpp"
#include "starling/tools/repro/experiments.hpp"

namespace starling::program {
namespace {

/// The barriers that the claims compare: those that see all workers, and those that draw a sample.
const std::vector<std::string> global_barriers{"bsp", "ssp:s=4"};
const std::vector<std::string> sampled_barriers{"pbsp:beta=10", "pssp:s=4,beta=10"};

/// Returns the mean steps in one setting as a multiple of those in another.
double progress_ratio(const ExperimentRunner& runner, const SimulatedSetting& numerator,
                      const SimulatedSetting& denominator) {
  return mean_steps(runner.runs_of(numerator)).mean / mean_steps(runner.runs_of(denominator)).mean;
}

/// Returns for each barrier the mean steps at the value `to` of a sweep, as a share of the mean
/// steps at the value `from`.
std::vector<double> shares_left(const ExperimentRunner& runner, const Sweep& sweep,
                                const std::vector<std::string>& barriers, double from, double to) {
  std::vector<double> shares;
  shares.reserve(barriers.size());
  for (const auto& barrier : barriers)
    shares.push_back(
        progress_ratio(runner, sweep.setting(barrier, to), sweep.setting(barrier, from)));
  return shares;
}

/// Prints shares, like "38 %, 52 %".
std::string shares_text(const std::vector<double>& shares) {
  std::string text;
  for (const double share : shares)
    text += (text.empty() ? "" : ", ") + fmt::format("{:.0f} %", 100 * share);
  return text;
}

Sweep straggler_sweep(const ExperimentRunner& runner) {
  return {published_five(),
          runner.options().quick ? std::vector<double>{0, 5, 30}
                                 : std::vector<double>{0, 5, 10, 15, 20, 25, 30},
          [](const std::string& barrier, double percent) {
            return SimulatedSetting{.barrier = barrier,
                                    .straggler = percent > 0 ? print_number(percent) + "%:4x" : ""};
          }};
}

void request_straggler_share_runs(ExperimentRunner& runner) {
  request(runner, straggler_sweep(runner));
}

Section report_straggler_share(const ExperimentRunner& runner, ExperimentResults& results) {
  const Sweep sweep = straggler_sweep(runner);
  const auto of_global = shares_left(runner, sweep, global_barriers, 0, 5);
  const auto of_sampled = shares_left(runner, sweep, sampled_barriers, 0, 5);
  results.add("5 % stragglers, BSP and SSP: progress left", "collapses (below 50 %)",
              shares_text(of_global), std::ranges::max(of_global) < 0.5);
  results.add("5 % stragglers, pBSP and pSSP: progress left", "hardly falls (above 90 %)",
              shares_text(of_sampled), std::ranges::min(of_sampled) > 0.9);
  const auto most_global = shares_left(runner, sweep, global_barriers, 0, 30);
  const auto most_sampled = shares_left(runner, sweep, sampled_barriers, 0, 30);
  results.add("30 % stragglers: progress left to pBSP and pSSP, and to BSP and SSP",
              "more to the sampled", shares_text(most_sampled) + "; " + shares_text(most_global),
              std::ranges::min(most_sampled) > std::ranges::max(most_global));
  Plot plot{.name = "psp-straggler-share",
            .title = "Progress by share of stragglers",
            .x = "stragglers, 4 times slower (%)",
            .y = "steps after 40 s",
            .series = sweep_series(runner, sweep),
            .style = PlotStyle::points};
  return {"How many stragglers",
          {Paragraph{"A share of the workers takes 4 times as long for each step. A cell shows: "
                     "mean steps ± standard error (sd over the workers, slowest-fastest worker "
                     "of all seeds). The mean hides workers that are far behind; the slowest "
                     "worker shows them."},
           sweep_table(runner, "stragglers", sweep, " %"),
           results.add(std::move(plot), "Mean steps by the share of stragglers.")}};
}

Sweep slowness_sweep(const ExperimentRunner& runner) {
  return {published_five(),
          runner.options().quick ? std::vector<double>{4, 16} : std::vector<double>{2, 4, 8, 16},
          [](const std::string& barrier, double factor) {
            return SimulatedSetting{.barrier = barrier,
                                    .straggler = "5%:" + print_number(factor) + "x"};
          }};
}

void request_straggler_slowness_runs(ExperimentRunner& runner) {
  request(runner, slowness_sweep(runner));
}

Section report_straggler_slowness(const ExperimentRunner& runner, ExperimentResults& results) {
  const Sweep sweep = slowness_sweep(runner);
  const auto of_global = shares_left(runner, sweep, global_barriers, 4, 16);
  const auto of_sampled = shares_left(runner, sweep, sampled_barriers, 4, 16);
  results.add("5 % stragglers, from 4 to 16 times slower, BSP and SSP: progress left",
              "goes on falling (below 50 %)", shares_text(of_global),
              std::ranges::max(of_global) < 0.5);
  results.add("5 % stragglers, from 4 to 16 times slower, pBSP and pSSP: progress left",
              "hardly falls (above 90 %)", shares_text(of_sampled),
              std::ranges::min(of_sampled) > 0.9);
  Plot plot{.name = "psp-straggler-slowness",
            .title = "Progress by slowness of 5 % stragglers",
            .x = "times slower",
            .y = "steps after 40 s",
            .series = sweep_series(runner, sweep),
            .style = PlotStyle::points};
  return {"How slow the stragglers are",
          {Paragraph{"5 % of the workers are stragglers, 2 to 16 times slower than the others. "
                     "The cells show the same figures as above."},
           sweep_table(runner, "times slower", sweep, ""),
           results.add(std::move(plot), "Mean steps by how slow the stragglers are.")}};
}

Sweep size_sweep(const ExperimentRunner& runner) {
  std::vector<double> workers{100, 1000};
  if (!runner.options().quick) {
    workers.resize(10);
    for (std::size_t i = 0; i < workers.size(); ++i) workers[i] = 100 * static_cast<double>(i + 1);
  }
  return {published_five(), workers, [](const std::string& barrier, double count) {
            return SimulatedSetting{.barrier = barrier, .workers = static_cast<std::size_t>(count)};
          }};
}

void request_size_runs(ExperimentRunner& runner) { request(runner, size_sweep(runner)); }

Section report_size(const ExperimentRunner& runner, ExperimentResults& results) {
  const Sweep sweep = size_sweep(runner);
  const auto of_global = shares_left(runner, sweep, global_barriers, 100, 1000);
  const auto of_sampled = shares_left(runner, sweep, sampled_barriers, 100, 1000);
  results.add("From 100 to 1,000 workers, BSP and SSP: progress left", "falls",
              shares_text(of_global), std::ranges::max(of_global) < 0.95);
  results.add("From 100 to 1,000 workers, pBSP and pSSP: progress left",
              "hardly falls (above 90 %)", shares_text(of_sampled),
              std::ranges::min(of_sampled) > 0.9);
  Plot plot{.name = "psp-size",
            .title = "Progress by number of workers",
            .x = "workers",
            .y = "steps after 40 s",
            .series = sweep_series(runner, sweep),
            .style = PlotStyle::points};
  return {"How many workers",
          {Paragraph{"From 100 to 1,000 workers, no stragglers. The cells show the same figures "
                     "as above."},
           sweep_table(runner, "workers", sweep, ""),
           results.add(std::move(plot), "Mean steps by the number of workers.")}};
}

const std::vector<std::string> rechecks{"arrival", "notify", "interval:auto",
                                        "notify+interval:auto"};

void request_recheck_runs(ExperimentRunner& runner) {
  for (const auto& recheck : rechecks) {
    for (const auto& barrier : sampled_barriers)
      runner.request({.barrier = barrier, .recheck = recheck});
    runner.request({"pbsp:beta=2", 8, "1:4x", recheck});
  }
  runner.request({"bsp", 8, "1:4x", "arrival"});
}

Plot recheck_plot(const ExperimentRunner& runner) {
  Plot plot{.name = "psp-recheck",
            .title = "Progress and messages by recheck policy",
            .x = "messages a step",
            .y = "steps after 40 s"};
  for (const auto& barrier : sampled_barriers)
    for (const auto& recheck : rechecks) {
      const SimRuns& runs = runner.runs_of({.barrier = barrier, .recheck = recheck});
      plot.series.push_back({fmt::format("{}, {}", barrier, recheck),
                             {{over_runs(runs, messages_a_step).mean, mean_steps(runs).mean}},
                             true});
    }
  return plot;
}

Section report_recheck(const ExperimentRunner& runner, ExperimentResults& results) {
  std::vector<SettingRow> rows;
  for (const auto& barrier : sampled_barriers)
    for (const auto& recheck : rechecks)
      rows.push_back(
          {fmt::format("{}, {}", barrier, recheck), {.barrier = barrier, .recheck = recheck}});
  std::vector<SettingRow> eight_worker_rows{{"bsp", {"bsp", 8, "1:4x", "arrival"}}};
  for (const auto& recheck : rechecks)
    eight_worker_rows.push_back({"pbsp:beta=2, " + recheck, {"pbsp:beta=2", 8, "1:4x", recheck}});
  return {"When a waiting worker draws again",
          {Paragraph{"The paper does not study when a worker draws again. A worker that may not "
                     "pass draws again at one of these times: at every arriving update (arrival; "
                     "possible only if one member knows every step, as in the paper); when the "
                     "first laggard of its draw, that is, the first drawn worker that is too far "
                     "behind, notifies it that it has caught up (notify); after a quarter of its "
                     "own median step time (interval:auto); or at the earlier of the last two "
                     "times (notify+interval:auto). The tables count messages of barrier control "
                     "only. With arrival, these are an arrival and a release for each step. With "
                     "the other policies, workers ask each other, and the messages are "
                     "questions, answers, requests for notification and notifications."},
           progress_table(runner, "1,000 workers", rows),
           results.add(recheck_plot(runner), "Steps after 40 s over the messages a step."),
           Paragraph{"Eight workers, one of them 4 times slower:"},
           progress_table(runner, "8 workers", eight_worker_rows)}};
}

}  // namespace

Experiment straggler_share_experiment() {
  return {request_straggler_share_runs, report_straggler_share};
}
Experiment straggler_slowness_experiment() {
  return {request_straggler_slowness_runs, report_straggler_slowness};
}
Experiment size_experiment() { return {request_size_runs, report_size}; }
Experiment recheck_experiment() { return {request_recheck_runs, report_recheck}; }

}  // namespace starling::program
