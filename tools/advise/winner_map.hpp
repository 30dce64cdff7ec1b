/// Finds the best barrier for each of many clusters, which differ in the number of workers, the
/// share of stragglers, their slowness and the jitter of steps. Plain values; simulate_winner_map()
/// uses several threads, and one thread calls it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starling/tools/advise/trials.hpp"

namespace starling::program {

/// A cluster whose workers differ in their mean step times alone.
struct ClusterKind {
  std::size_t workers = 4;
  /// The share of the workers whose steps take `slowness` times as long; 0 for equal workers.
  double straggler_share = 0;
  double slowness = 1;
  /// The standard deviation of a worker's step times divided by their mean.
  double jitter = 0.05;

  bool operator==(const ClusterKind&) const = default;
};

/// The mean step time of a worker that is no straggler.
inline constexpr core::Time mean_step_time = std::chrono::milliseconds{100};

/// Returns step times with gamma distributions and the mean `mean_step_time`, or `slowness` times
/// as much. The last workers are the stragglers. Requires: straggler_share * workers is a whole
/// number; jitter > 0.
[[nodiscard]] StepTimes step_times_of(const ClusterKind& cluster);

/// The clusters of a winner map: each combination of the values below. Clusters without stragglers
/// occur once for each number of workers and jitter, whatever the slowness.
struct WinnerMapOptions {
  std::vector<std::size_t> workers{4, 8, 16};
  std::vector<double> straggler_shares{0, 0.25, 0.5};
  std::vector<double> slownesses{2, 4, 8};
  std::vector<double> jitters{0.05, 0.3, 1};
  /// The virtual time of a run, in mean steps of the slowest worker.
  std::uint64_t steps = 150;
  /// The first seed. Each barrier is run under `seeds` consecutive seeds.
  std::uint64_t seed = 1;
  std::uint64_t seeds = 3;
  /// The number of runs at the same time.
  std::size_t threads = 1;
};

/// One cluster of a winner map, and its best barriers.
struct WinnerMapCell {
  ClusterKind cluster;
  /// The barriers of barriers_to_compare() in central mode.
  std::vector<BarrierFigures> barriers{};
  /// The best barrier by each of `measures`, in their order; absent if no barrier reached the
  /// target loss.
  std::array<std::optional<Winner>, measures.size()> winners{};
};

/// Returns the clusters of a winner map in the order of its rows.
[[nodiscard]] std::vector<ClusterKind> clusters_of(const WinnerMapOptions& options);

/// Returns the virtual time in which the slowest worker makes `steps` steps on average.
[[nodiscard]] core::Time horizon_of(const ClusterKind& cluster, std::uint64_t steps);

/// Simulates each cluster under each barrier and seed. Calls `on_progress` with the share that is
/// done.
[[nodiscard]] std::vector<WinnerMapCell> simulate_winner_map(
    const WinnerMapOptions& options, const std::function<void(double)>& on_progress);

}  // namespace starling::program
