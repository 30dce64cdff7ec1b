#include "starling/tools/twin/twin.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "starling/base/check.hpp"
#include "starling/base/seconds.hpp"

namespace starling::program {
namespace {

/// Records how many steps each worker has begun. When a live run is stopped, its workers finish the
/// steps that they have begun.
class BegunSteps final : public sim::Learner {
 public:
  explicit BegunSteps(std::size_t workers) : steps_(workers) {}

  void on_begin(sim::MemberId worker, sim::Step step, sim::Time) override { steps_[worker] = step; }
  void on_end(sim::MemberId, sim::Step, sim::Time) override {}

  /// Returns the workers' numbers of steps in ascending order.
  [[nodiscard]] std::vector<sim::Step> sorted() && {
    std::ranges::sort(steps_);
    return std::move(steps_);
  }

 private:
  std::vector<sim::Step> steps_;
};

/// The distance of a bound from its quantile, as a share of the quantile.
constexpr double widening = 0.05;
/// The smallest distance of the bounds of the waiting share from their quantiles, as a share of the
/// workers' time. Even a worker that never waits takes time to ask.
constexpr double waiting_widening_min = 0.01;

FigureComparison compare_figure(std::string name, double RunFigures::*figure,
                                const RunFigures& live, std::span<const RunFigures> simulated,
                                double widening_min = 0) {
  std::vector<double> values;
  for (const RunFigures& run : simulated) values.push_back(run.*figure);
  std::ranges::sort(values);
  FigureComparison compared{.name = std::move(name),
                            .live = live.*figure,
                            .low = quantile(values, 0.005),
                            .median = quantile(values, 0.5),
                            .high = quantile(values, 0.995)};
  compared.allowed_min =
      std::max(0.0, compared.low - std::max(widening * compared.low, widening_min));
  compared.allowed_max = compared.high + std::max(widening * compared.high, widening_min);
  return compared;
}

}  // namespace

RunFigures figures_of(const actor::Progress& end) {
  return {.updates = static_cast<double>(end.updates),
          .steps_min = static_cast<double>(end.spread.min),
          .steps_median = static_cast<double>(end.spread.median),
          .steps_max = static_cast<double>(end.spread.max),
          .max_lag = static_cast<double>(end.max_lag),
          .waiting_share = end.waiting_share,
          .elapsed_s = in_seconds(end.elapsed)};
}

RunFigures simulate_twin(const sim::StepOptions& options) {
  BegunSteps begun{options.workers};
  const auto result = sim::simulate(options, &begun);
  const auto steps = std::move(begun).sorted();
  const auto lag = std::max(result.max_lag, options.steps_max == barrier::unlimited
                                                ? steps.back() - steps.front()
                                                : sim::Step{0});
  return {
      .updates = static_cast<double>(std::accumulate(steps.begin(), steps.end(), std::uint64_t{0})),
      .steps_min = static_cast<double>(steps.front()),
      .steps_median = static_cast<double>(steps[steps.size() / 2]),
      .steps_max = static_cast<double>(steps.back()),
      .max_lag = static_cast<double>(lag),
      .waiting_share = result.waiting_share,
      .elapsed_s = in_seconds(result.elapsed)};
}

std::vector<FigureComparison> compare(const RunFigures& live, std::span<const RunFigures> simulated,
                                      bool completed) {
  STARLING_CHECK(!simulated.empty());
  std::vector<FigureComparison> figures;
  const auto add = [&](const char* name, double RunFigures::*figure, double widening_min = 0) {
    figures.push_back(compare_figure(name, figure, live, simulated, widening_min));
  };
  if (completed) {
    add("elapsed_s", &RunFigures::elapsed_s);
  } else {
    add("updates", &RunFigures::updates);
    add("steps_min", &RunFigures::steps_min);
    add("steps_median", &RunFigures::steps_median);
    add("steps_max", &RunFigures::steps_max);
  }
  add("max_lag", &RunFigures::max_lag);
  add("waiting_share", &RunFigures::waiting_share, waiting_widening_min);
  return figures;
}

double quantile(std::span<const double> values, double q) {
  STARLING_CHECK(!values.empty());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], position - static_cast<double>(below));
}

}  // namespace starling::program
