#include "starling/tools/advise/winner_map.hpp"

#include <chrono>
#include <cmath>
#include <utility>

#include "starling/base/distributions/distribution.hpp"
#include "starling/base/to_duration.hpp"

namespace starling::program {

StepTimes step_times_of(const ClusterKind& cluster) {
  const Distribution law{laws::Gamma{mean_step_time, 1 / (cluster.jitter * cluster.jitter)}};
  const auto stragglers = static_cast<std::size_t>(
      std::lround(cluster.straggler_share * static_cast<double>(cluster.workers)));
  const std::size_t first_straggler = cluster.workers - stragglers;
  return [law, first_straggler, slowness = cluster.slowness](core::MemberId worker, core::Step,
                                                             Random& random) {
    const double factor = worker >= first_straggler ? slowness : 1;
    return to_duration(static_cast<double>(law.draw(random).count()) * factor);
  };
}

std::vector<ClusterKind> clusters_of(const WinnerMapOptions& options) {
  std::vector<ClusterKind> clusters;
  for (const std::size_t workers : options.workers)
    for (const double share : options.straggler_shares)
      for (const double slowness : share > 0 ? options.slownesses : std::vector<double>{1})
        for (const double jitter : options.jitters)
          clusters.push_back({.workers = workers,
                              .straggler_share = share,
                              .slowness = slowness,
                              .jitter = jitter});
  return clusters;
}

core::Time horizon_of(const ClusterKind& cluster, std::uint64_t steps) {
  return to_duration(static_cast<double>(mean_step_time.count()) * cluster.slowness *
                     static_cast<double>(steps));
}

std::vector<WinnerMapCell> simulate_winner_map(const WinnerMapOptions& options,
                                               const std::function<void(double)>& on_progress) {
  std::vector<WinnerMapCell> cells;
  std::vector<TrialOptions> settings;
  std::vector<std::size_t> cell_of;
  for (const ClusterKind& cluster : clusters_of(options)) {
    for (barrier::Barrier& barrier : barriers_to_compare(cluster.workers, core::Mode::central)) {
      settings.push_back({.barrier = std::move(barrier),
                          .workers = cluster.workers,
                          .step_times = step_times_of(cluster),
                          .horizon = horizon_of(cluster, options.steps),
                          .seed = options.seed,
                          .points = 1});
      cell_of.push_back(cells.size());
    }
    cells.push_back({.cluster = cluster});
  }
  const auto runs = run_trials(settings, options.seeds, options.threads, on_progress);
  for (std::size_t i = 0; i < runs.size(); ++i)
    cells[cell_of[i]].barriers.push_back(figures_of(runs[i]));
  for (WinnerMapCell& cell : cells)
    for (std::size_t m = 0; m < measures.size(); ++m)
      cell.winners[m] = winner_of(cell.barriers, measures[m]);
  return cells;
}

}  // namespace starling::program
