/// The runs of `starling repro barriers`: barriers of the literature, simulated on small clusters
/// and live, and the map of which barrier wins where. Not thread-safe; the simulations run on
/// several threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/advise/winner_map.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// The virtual time of each run of a cluster that the claims are about. In a shorter run, the head
/// start of 15 steps that dssp with a cap grants would raise its updates noticeably.
inline constexpr core::Time studied_time = std::chrono::seconds{40};

struct StudyOptions {
  /// The first of the seeds, and their number.
  std::uint64_t seed = 1;
  std::uint64_t seeds = 20;
  /// The number of simulations at the same time.
  std::size_t threads = 1;
  /// The wall time of each live run.
  core::Time live = std::chrono::seconds{8};
  /// True for fewer clusters of the map.
  bool quick = false;
  bool quiet = false;
};

/// A cluster of the study, and its simulated runs under each of studied_barriers() that its workers
/// can run.
struct StudiedCluster {
  std::string name;
  ClusterKind cluster;
  std::vector<BarrierTrials> runs{};
};

/// A live run of four workers, one of them at half speed, beside its simulations.
struct LiveComparison {
  barrier::Barrier barrier;
  /// The distribution of the delay of a step.
  std::string delay;
  /// The wall time of the live run, and its figures.
  double seconds = 0;
  double updates = 0;
  double waiting_share = 0;
  double max_lag = 0;
  /// The mean time of a live step beyond its delay, in seconds. Simulated steps take it too.
  double overhead_s = 0;
  BarrierFigures simulated{};

  /// Returns the live updates divided by the simulated ones.
  [[nodiscard]] double ratio() const { return updates / simulated.updates.mean; }
  /// Returns true if the live updates differ from the simulated ones by at most 5 %.
  [[nodiscard]] bool agrees() const { return ratio() >= 0.95 && ratio() <= 1.05; }
};

struct BarrierStudy {
  StudyOptions options{};
  /// In this order: speeds (1,1,1,2), speeds (1,2), equal speeds with 30 % jitter.
  std::vector<StudiedCluster> clusters{};
  std::vector<LiveComparison> live{};
  std::vector<WinnerMapCell> map{};
};

/// Returns the barriers of the study as text. They include those that others must equal, as `asp`
/// for `fluent:s=3,p=0`.
[[nodiscard]] const std::vector<std::string>& studied_barriers();
/// Returns the barriers among studied_barriers() that run live.
[[nodiscard]] const std::vector<std::string>& live_barriers();

/// Returns the runs of a barrier on a cluster; nullptr if its workers cannot run it.
[[nodiscard]] const BarrierTrials* runs_of(const StudiedCluster& cluster,
                                           const std::string& barrier);
/// Returns for each seed the updates of one barrier divided by those of another. Requires: both ran
/// on the cluster.
[[nodiscard]] std::vector<double> update_ratios(const StudiedCluster& cluster,
                                                const std::string& barrier,
                                                const std::string& other);
/// Returns the live run of a barrier with a delay. Requires: there is one.
[[nodiscard]] const LiveComparison& live_run(const BarrierStudy& study, const std::string& barrier,
                                             const std::string& delay);

/// The delays of the live runs.
inline constexpr const char* constant_delay = "const:20ms";
inline constexpr const char* exponential_delay = "exp:20ms";

/// Makes all runs. Returns the error of the first live run that failed.
[[nodiscard]] Result<BarrierStudy> make_study(const Registry& registry,
                                              const StudyOptions& options);

}  // namespace starling::program
