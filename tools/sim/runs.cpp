#include "starling/tools/sim/runs.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <variant>

#include "starling/base/check.hpp"
#include "starling/base/seconds.hpp"

namespace starling::program {
namespace {

/// Returns the virtual time between two consecutive points of a curve over time.
core::Time measurement_interval(const sim::StepOptions& options) {
  return std::max(core::Time{1}, options.horizon / static_cast<std::int64_t>(options.points));
}

}  // namespace

SimRun figures_of(const sim::StepOptions& options, const sim::StepResult& result) {
  SimRun run{.seed = options.seed, .workers = options.workers};
  run.steps = compute_statistics(std::vector<double>(result.steps.begin(), result.steps.end()));
  run.median = median({result.steps.begin(), result.steps.end()});
  std::map<sim::Step, std::uint64_t> histogram;
  for (const sim::Step step : result.steps) ++histogram[step];
  run.histogram.assign(histogram.begin(), histogram.end());
  run.curve = result.curve;
  run.updates = result.updates;
  run.draws = result.draws;
  run.passes = result.passes;
  run.waiting_share = result.waiting_share;
  run.messages = result.messages;
  run.elapsed_s = in_seconds(result.elapsed);
  run.max_lag = result.max_lag;
  run.exchange = result.exchange;
  return run;
}

Summary over_runs(const SimRuns& runs, const std::function<double(const SimRun&)>& figure) {
  std::vector<double> values;
  for (const SimRun& run : runs) values.push_back(figure(run));
  return compute_statistics(values);
}

double messages_a_step(const SimRun& run) {
  return run.updates == 0
             ? 0
             : static_cast<double>(run.messages.total()) / static_cast<double>(run.updates);
}

double updates_per_second(const SimRun& run) {
  return run.elapsed_s > 0 ? static_cast<double>(run.updates) / run.elapsed_s : 0;
}

Series steps_cdf(const std::string& name, const SimRuns& runs) {
  std::map<sim::Step, std::uint64_t> all;
  std::uint64_t count = 0;
  for (const SimRun& run : runs)
    for (const auto& [step, workers] : run.histogram) {
      all[step] += workers;
      count += workers;
    }
  Series series{.name = name};
  if (!all.empty()) series.points.push_back({static_cast<double>(all.begin()->first), 0});
  std::uint64_t below = 0;
  for (const auto& [step, workers] : all) {
    below += workers;
    series.points.push_back(
        {static_cast<double>(step), static_cast<double>(below) / static_cast<double>(count)});
  }
  return series;
}

Series over_time(const std::string& name, const SimRuns& runs,
                 const std::function<double(const SimRun&, const sim::Point&)>& figure) {
  Series series{.name = name};
  std::size_t points = 0;
  for (const SimRun& run : runs) points = std::max(points, run.curve.size());
  for (std::size_t i = 0; i < points; ++i) {
    std::vector<double> values;
    core::Time at{};
    for (const SimRun& run : runs) {
      if (run.curve.empty()) continue;
      // A run whose workers have all ended counts with its last point.
      const sim::Point& point = run.curve[std::min(i, run.curve.size() - 1)];
      values.push_back(figure(run, point));
      at = std::max(at, point.at);
    }
    series.points.push_back({in_seconds(at), compute_statistics(values).mean});
  }
  return series;
}

Series error_over_time(const std::string& name, const SimRuns& runs) {
  Series series{.name = name};
  std::size_t points = 0;
  for (const SimRun& run : runs) points = std::max(points, run.errors.size());
  for (std::size_t i = 0; i < points; ++i) {
    std::vector<double> values;
    double at = 0;
    for (const SimRun& run : runs) {
      if (run.errors.empty()) continue;
      const PlotPoint& point = run.errors[std::min(i, run.errors.size() - 1)];
      values.push_back(point.y);
      at = std::max(at, point.x);
    }
    series.points.push_back({at, compute_statistics(values).mean});
  }
  return series;
}

ProgressEstimator::Kind kind_of(std::size_t id, const barrier::Barrier& barrier) {
  const bool is_bsp = std::holds_alternative<barrier::Bsp>(barrier.rule);
  if (barrier::always_passes(barrier)) return {id, 0.5};
  if (barrier.sample) return {id, is_bsp ? 0.6 : 1};
  return {id, is_bsp ? 0.1 : 0.12};
}

std::vector<std::size_t> costliest_first(const std::vector<ProgressEstimator::Kind>& kinds) {
  std::vector<std::size_t> order(kinds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::set<std::size_t> seen;
  std::vector<bool> is_first;
  for (const ProgressEstimator::Kind& kind : kinds) is_first.push_back(seen.insert(kind.id).second);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) {
    return std::pair{static_cast<bool>(is_first[i]), kinds[i].cost};
  });
  return order;
}

SimRuns simulate_all(std::span<const sim::StepOptions> options, std::size_t threads,
                     const std::function<void(const OverallProgress&)>& on_progress,
                     const LinearProblem* problem) {
  SimRuns runs(options.size());
  std::vector<ProgressEstimator::Kind> kinds;
  std::map<std::pair<std::string, std::size_t>, std::size_t> ids;
  for (const auto& step_options : options) {
    const auto id =
        ids.try_emplace({barrier::print(step_options.barrier), step_options.workers}, ids.size());
    kinds.push_back(kind_of(id.first->second, step_options.barrier));
    // If the number of steps is limited, runs under all barriers make the same number of steps, so
    // they have the same cost.
    if (step_options.steps_max != barrier::finished) kinds.back().cost = 1;
    kinds.back().cost *= static_cast<double>(step_options.workers);
  }
  ProgressEstimator estimator{kinds, threads};
  const auto order = costliest_first(kinds);
  const auto simulate_one = [&](std::size_t position) {
    const std::size_t i = order[position];
    estimator.begin(i);
    auto step_options = options[i];
    step_options.on_progress = [&](double done) {
      estimator.set(i, std::min(done, 0.999));
      return true;
    };
    std::optional<LinearLearner> learner;
    if (problem != nullptr) {
      auto learning = learner_options(step_options.workers, step_options.seed);
      learning.every = measurement_interval(step_options);
      learner.emplace(*problem, learning);
    }
    const auto result = sim::simulate(step_options, learner ? &*learner : nullptr);
    runs[i] = figures_of(step_options, result);
    if (learner) {
      learner->finish(result.elapsed);
      runs[i].errors = learner->errors();
    }
    estimator.set(i, 1);
  };
  for_each_piece(options.size(), threads, simulate_one, [&] { on_progress(estimator.progress()); });
  return runs;
}

}  // namespace starling::program
