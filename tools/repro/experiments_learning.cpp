#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "starling/tools/repro/experiments.hpp"
#include "starling/tools/repro/theory.hpp"
#include "starling/tools/sim/linear_learner.hpp"

namespace starling::program {
namespace {

/// The stragglers under which the models learn, as --straggler takes them; empty for none.
const std::vector<std::string> straggler_settings{"", "5%:4x", "20%:4x"};

SimulatedSetting learning_setting(const std::string& barrier, const std::string& straggler) {
  return {.barrier = barrier, .straggler = straggler};
}

void request_learning_runs(ExperimentRunner& runner) {
  for (const auto& barrier : published_five())
    for (const auto& straggler : straggler_settings)
      runner.request_learning(learning_setting(barrier, straggler),
                              straggler.empty() && !runner.options().quick);
}

/// Returns the curve of the runs' mean error over time, with only every tenth point.
Series error_series(const std::string& name, const std::vector<LearningRun>& runs) {
  Series series{.name = name};
  std::size_t points = SIZE_MAX;
  for (const auto& run : runs) points = std::min(points, run.errors.size());
  constexpr std::size_t point_interval = 10;
  for (std::size_t i = 0; i < points; i += point_interval) {
    double sum = 0;
    for (const auto& run : runs) sum += run.errors[i].y;
    series.points.push_back({runs[0].errors[i].x, sum / static_cast<double>(runs.size())});
  }
  return series;
}

/// Summarises the times at which the runs of a setting reached the error goal; returns nullopt if
/// one of the runs never reached it.
std::optional<Summary> times_to_goal(const ExperimentRunner& runner,
                                     const SimulatedSetting& setting) {
  std::vector<double> times;
  for (const auto& run : runner.learning_runs_of(setting)) {
    const auto time = time_to(run.errors, ExperimentRunner::error_goal);
    if (!time) return std::nullopt;
    times.push_back(*time);
  }
  return compute_statistics(times);
}

/// Returns the mean, the standard error, the sd and the range of a time in seconds.
std::string time_text(const std::optional<Summary>& time) {
  if (!time) return "never";
  return fmt::format("{} ({:.2f}, {:.2f}-{:.2f})", with_error(*time, 2), time->sd, time->min,
                     time->max);
}

TextTable time_table(const ExperimentRunner& runner) {
  TextTable table{{"barrier", "no stragglers", "5 %, 4 times slower", "20 %, 4 times slower"}};
  for (const auto& barrier : published_five()) {
    std::vector<std::string> row{barrier};
    for (const auto& straggler : straggler_settings)
      row.push_back(time_text(times_to_goal(runner, learning_setting(barrier, straggler))));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Section report_learning(const ExperimentRunner& runner, ExperimentResults& results) {
  const auto bsp = times_to_goal(runner, learning_setting("bsp", "5%:4x"));
  const auto pssp = times_to_goal(runner, learning_setting("pssp:s=4,beta=10", "5%:4x"));
  const double speed_up = bsp && pssp ? bsp->mean / pssp->mean : 0;
  results.add("5 % stragglers: pSSP comes to an error of 0.1 sooner than BSP", "at least 3 times",
              fmt::format("{:.1f} times", speed_up), speed_up >= 3);
  Plot plot{.name = "psp-error",
            .title = "Error of a linear model of 1,000 parameters",
            .x = "virtual time (s)",
            .y = "normalised error",
            .log_y = true};
  for (const auto& barrier : published_five())
    plot.series.push_back(
        error_series(barrier, runner.learning_runs_of(learning_setting(barrier, ""))));
  return {
      "What the updates are worth",
      {Paragraph{
           fmt::format("1,000 workers learn a linear model of {} parameters by stochastic gradient "
                       "descent. A worker reads the model w when it begins a step. When it ends "
                       "the step, it adds its gradient over a fresh batch of {} samples, at rate "
                       "{} / 1,000. The features and the true model w* are drawn from normal "
                       "distributions. The noise of the labels has a standard deviation of 0.1. "
                       "The normalised error is |w - w*| / |w0 - w*|.",
                       linear_parameters, LearnerOptions{}.batch, LearnerOptions{}.rate)},
       results.add(std::move(plot), "The error over time, no stragglers, means over the seeds."),
       Paragraph{"Seconds of virtual time until the error is 0.1: mean ± standard error (sd, "
                 "soonest-latest of the seeds)."},
       time_table(runner)}};
}

/// The sample sizes for which the paper gives the smallest bound on the mean lag.
constexpr std::array<double, 3> lag_sample_sizes{1, 4, 16};

SimulatedSetting lag_setting(double beta) {
  return {.barrier = fmt::format("pssp:s=4,beta={}", beta)};
}

void request_lag_runs(ExperimentRunner& runner) {
  for (const double beta : lag_sample_sizes) runner.request(lag_setting(beta));
}

/// Statistics of the lag over all ordered pairs of workers of a run. The lag is the number of steps
/// by which the second worker is behind the first; it counts as 0 if the second is ahead.
struct PairLags {
  /// The share of pairs whose lag is at most 4: F(4) of theory.hpp.
  double share_within = 0;
  /// The means of the lag and of its square.
  double mean = 0;
  double mean_squared = 0;
};

PairLags pair_lags(const SimRun& run) {
  PairLags lags;
  const auto workers = static_cast<double>(run.workers);
  const double pairs = workers * (workers - 1);
  double beyond = 0;
  for (const auto& [ahead, workers_ahead] : run.histogram)
    for (const auto& [behind, workers_behind] : run.histogram) {
      if (behind >= ahead) break;
      const auto lag = static_cast<double>(ahead - behind);
      const double share =
          static_cast<double>(workers_ahead) * static_cast<double>(workers_behind) / pairs;
      if (lag > 4) beyond += share;
      lags.mean += lag * share;
      lags.mean_squared += lag * lag * share;
    }
  lags.share_within = 1 - beyond;
  return lags;
}

/// Returns the mean number of steps by which workers are behind the fastest one.
double mean_lag_behind_fastest(const SimRun& run) { return run.steps.max - run.steps.mean; }

/// Adds to `plot`, for each sample size, the curve of a bound over `a` (theory.hpp), and the
/// simulated value of the figure that the bound limits.
Plot bound_plot(const ExperimentRunner& runner, Plot plot,
                double (*bound)(const LagTheory&, double), double PairLags::*figure) {
  plot.x = "a = F(4)^beta";
  plot.log_y = true;
  for (const double beta : lag_sample_sizes) {
    Series series{.name = fmt::format("bound, beta={}", beta)};
    for (int i = 2; i <= 95; ++i)
      series.points.push_back({0.01 * i, bound({.beta = beta}, 0.01 * i)});
    plot.series.push_back(std::move(series));
  }
  for (const double beta : lag_sample_sizes) {
    const SimRuns& runs = runner.runs_of(lag_setting(beta));
    const double share_within =
        over_runs(runs, [](const SimRun& run) { return pair_lags(run).share_within; }).mean;
    const double lag =
        over_runs(runs, [&](const SimRun& run) { return pair_lags(run).*figure; }).mean;
    plot.series.push_back(
        {fmt::format("simulated, beta={}", beta), {{std::pow(share_within, beta), lag}}, true});
  }
  return plot;
}

TextTable lag_table(const ExperimentRunner& runner) {
  TextTable table{{"beta", "smallest bound", "at a", "simulated: F(4)", "a", "bound there",
                   "mean lag", "mean squared lag", "mean lag behind the fastest"}};
  for (const double beta : lag_sample_sizes) {
    const SimRuns& runs = runner.runs_of(lag_setting(beta));
    const auto minimum = smallest_mean_lag_bound({.beta = beta});
    const auto over = [&](double PairLags::*figure) {
      return over_runs(runs, [&](const SimRun& run) { return pair_lags(run).*figure; });
    };
    const double share_within = over(&PairLags::share_within).mean;
    const double a = std::pow(share_within, beta);
    table.rows.push_back(
        {fmt::format("{}", beta), fmt::format("{:.2f}", minimum.bound),
         fmt::format("{:.2f}", minimum.a), fmt::format("{:.3f}", share_within),
         fmt::format("{:.3f}", a),
         fmt::format("{:.2f}", mean_lag_bound({.beta = beta, .steps = mean_steps(runs).mean}, a)),
         with_error(over(&PairLags::mean), 2), with_error(over(&PairLags::mean_squared), 2),
         with_error(over_runs(runs, mean_lag_behind_fastest), 2)});
  }
  return table;
}

void add_lag_claims(const ExperimentRunner& runner, ExperimentResults& results) {
  struct Published {
    double beta, bound, a;
  };
  for (const auto& [beta, bound, a] :
       {Published{1, 14.66, 0.51}, Published{4, 11.39, 0.39}, Published{16, 10.08, 0.30}}) {
    const auto minimum = smallest_mean_lag_bound({.beta = beta});
    results.add(fmt::format("Smallest bound on the mean lag, r=4, T=10,000, {} sampled", beta),
                fmt::format("{:.2f} at a={:.2f}", bound, a),
                fmt::format("{:.2f} at a={:.2f}", minimum.bound, minimum.a),
                std::abs(minimum.bound - bound) < 0.01 && std::abs(minimum.a - a) < 0.01);
    const SimRuns& runs = runner.runs_of(lag_setting(beta));
    double largest_share = 0;
    for (const SimRun& run : runs) {
      const auto lags = pair_lags(run);
      const double limit = mean_lag_bound({.beta = beta, .steps = run.steps.mean},
                                          std::pow(lags.share_within, beta));
      largest_share = std::max(largest_share, lags.mean / limit);
    }
    results.add(fmt::format("The simulated mean lag, {} sampled, is within its bound", beta),
                "in every run", fmt::format("at most {:.0f} % of it", 100 * largest_share),
                largest_share <= 1);
  }
}

Section report_lag(const ExperimentRunner& runner, ExperimentResults& results) {
  add_lag_claims(runner, results);
  return {"What theory says of the lag",
          {Paragraph{"The staleness is r=4, and a = F(r)^beta is the probability that none of "
                     "beta sampled workers lags more than r. Theory bounds the mean lag and the "
                     "mean squared lag (curves, T=10,000 steps). The table and the plots compare "
                     "these bounds with simulations of pSSP with s=4, for 1,000 workers after 40 "
                     "s. The simulated lag is a mean over all pairs of workers; the lag of a "
                     "worker that is ahead counts as 0. F(4) is the share of pairs with a lag of "
                     "at most 4. The column 'bound there' is the bound at the a that follows "
                     "from F(4), and at the simulated number of steps. As a goes to 0, the bound "
                     "on the squared lag falls below the exact sum."},
           lag_table(runner),
           results.add(bound_plot(runner,
                                  {.name = "psp-lag",
                                   .title = "Mean lag: bounds and simulation",
                                   .y = "mean lag (steps)"},
                                  mean_lag_bound, &PairLags::mean),
                       "Bounds on the mean lag, and simulated mean lags."),
           results.add(bound_plot(runner,
                                  {.name = "psp-squared-lag",
                                   .title = "Mean squared lag: bounds and simulation",
                                   .y = "mean squared lag"},
                                  mean_squared_lag_bound, &PairLags::mean_squared),
                       "Bounds on the mean squared lag, and simulated ones.")}};
}

}  // namespace

Experiment learning_experiment() { return {request_learning_runs, report_learning}; }
Experiment lag_experiment() { return {request_lag_runs, report_lag}; }

std::vector<Experiment> psp_experiments() {
  return {progress_experiment(),
          sample_size_experiment(),
          time_experiment(),
          straggler_share_experiment(),
          straggler_slowness_experiment(),
          size_experiment(),
          learning_experiment(),
          lag_experiment(),
          recheck_experiment()};
}

}  // namespace starling::program
