#include "starling/tools/advise/trials.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "starling/tools/program/parallel.hpp"

namespace starling::program {
namespace {

/// Summarises a figure over the runs of a barrier.
template <class Figure>
Summary over_trials(const BarrierTrials& runs, Figure figure) {
  std::vector<double> values;
  values.reserve(runs.trials.size());
  for (const Trial& trial : runs.trials) values.push_back(figure(trial));
  return compute_statistics(values);
}

/// Returns the cost of a barrier by a measure: the lower, the better. Returns infinity if the
/// barrier is left out of the comparison: for a time, because some run did not reach the target
/// loss; for staleness, because the barrier made far fewer updates than the one with `updates_max`;
/// for updates, because it made no update.
double cost_of(const BarrierFigures& barrier, Measure measure, double updates_max) {
  constexpr double none = std::numeric_limits<double>::infinity();
  constexpr double updates_share_min = 0.9;
  switch (measure) {
    case Measure::updates:
      return barrier.updates.mean > 0 ? 1 / barrier.updates.mean : none;
    case Measure::staleness:
      return barrier.updates.mean >= updates_share_min * updates_max ? barrier.staleness.mean
                                                                     : none;
    case Measure::seconds_at_small_rate:
      return barrier.seconds_to_loss[0] ? barrier.seconds_to_loss[0]->mean : none;
    case Measure::seconds_at_large_rate:
      return barrier.seconds_to_loss[1] ? barrier.seconds_to_loss[1]->mean : none;
  }
  return none;
}

}  // namespace

std::vector<BarrierTrials> run_trials(std::span<const TrialOptions> settings, std::uint64_t seeds,
                                      std::size_t threads,
                                      const std::function<void(double)>& on_progress) {
  std::vector<BarrierTrials> runs;
  for (const TrialOptions& setting : settings)
    runs.push_back({setting.barrier, std::vector<Trial>(seeds)});
  const std::size_t count = settings.size() * seeds;
  std::atomic<std::size_t> finished = 0;
  for_each_piece(
      count, threads,
      [&](std::size_t i) {
        TrialOptions options = settings[i / seeds];
        options.seed += i % seeds;
        runs[i / seeds].trials[i % seeds] = run_trial(options);
        ++finished;
      },
      [&] { on_progress(static_cast<double>(finished) / static_cast<double>(count)); });
  return runs;
}

BarrierFigures figures_of(const BarrierTrials& runs) {
  BarrierFigures figures{.barrier = runs.barrier};
  figures.updates = over_trials(runs, [](const Trial& trial) { return trial.updates; });
  figures.waiting_share = over_trials(runs, [](const Trial& trial) { return trial.waiting_share; });
  figures.staleness = over_trials(runs, [](const Trial& trial) { return trial.staleness; });
  figures.max_lag = over_trials(runs, [](const Trial& trial) { return trial.max_lag; }).max;
  for (std::size_t r = 0; r < learning_rates.size(); ++r)
    if (std::ranges::all_of(
            runs.trials, [r](const Trial& trial) { return trial.seconds_to_loss[r].has_value(); }))
      figures.seconds_to_loss[r] =
          over_trials(runs, [r](const Trial& trial) { return *trial.seconds_to_loss[r]; });
  return figures;
}

std::string print(Measure measure) {
  switch (measure) {
    case Measure::updates:
      return "most updates";
    case Measure::staleness:
      return "least stale";
    case Measure::seconds_at_small_rate:
      return "first at the loss, small rate";
    case Measure::seconds_at_large_rate:
      return "first at the loss, large rate";
  }
  return {};
}

std::optional<Winner> winner_of(std::span<const BarrierFigures> barriers, Measure measure) {
  double updates_max = 0;
  for (const BarrierFigures& barrier : barriers)
    updates_max = std::max(updates_max, barrier.updates.mean);
  std::vector<double> costs;
  costs.reserve(barriers.size());
  for (const BarrierFigures& barrier : barriers)
    costs.push_back(cost_of(barrier, measure, updates_max));
  const double least = std::ranges::min(costs);
  if (!(least < std::numeric_limits<double>::infinity())) return std::nullopt;
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < barriers.size(); ++i)
    if (costs[i] <= least * (1 + equal_within)) best.push_back(i);
  const auto first =
      std::ranges::min_element(best, {}, [&](std::size_t i) { return barriers[i].staleness.mean; });
  Winner winner{.barrier = *first};
  best.erase(first);
  winner.equals = std::move(best);
  return winner;
}

std::vector<barrier::Barrier> barriers_to_compare(std::size_t workers, core::Mode mode) {
  const bool is_central = core::keeps_steps_centrally(mode);
  const std::size_t others = workers - 1;
  std::vector<barrier::Barrier> barriers;
  if (is_central)
    barriers = {{barrier::Bsp{}},
                {barrier::Ssp{3}},
                {barrier::Dssp{.low = 3, .high = 15, .is_capped = true}},
                {barrier::Dssp{.low = 3, .high = 15}},
                {barrier::Ebsp{.ahead = 15}},
                {barrier::Fluent{.staleness = 3, .probability = 0.5}}};
  // Three quarters of two or three workers, rounded up, are all of them: that is bsp.
  if (is_central && workers > 3) barriers.push_back({barrier::Quorum{0.75}});
  // A sample of all others equals the barrier over all workers.
  if (others > 1 || !is_central) {
    const std::size_t sample = std::min<std::size_t>(2, is_central ? others - 1 : others);
    barriers.push_back(barrier::sampled(barrier::Bsp{}, sample));
    barriers.push_back(barrier::sampled(barrier::Ssp{3}, sample));
    // tuned:progress is left out: the job learns with two learning rates at once, and this barrier
    // would follow only one.
    using enum barrier::Tuned::Measure;
    barriers.push_back({barrier::Tuned{.measure = waiting, .target = 0.05}});
    barriers.push_back({barrier::Tuned{.measure = staleness, .target = 3}});
  }
  barriers.push_back({barrier::Asp{}});
  return barriers;
}

}  // namespace starling::program
