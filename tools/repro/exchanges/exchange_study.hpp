/// The runs of `starling repro exchanges`: what collectives cost, what gossip, overlapped rounds
/// and averages send and take in simulations, and what each exchange learns live. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

struct ExchangeStudyOptions {
  /// The first of the seeds with which jobs learn live, and their number.
  std::uint64_t seed = 1;
  std::uint64_t seeds = 3;
  /// The wall time of each live run of overlapped rounds.
  core::Time live = std::chrono::seconds{8};
  /// True for fewer workers and shorter jobs.
  bool quick = false;
  /// True to show no progress.
  bool quiet = false;
};

/// An all-reduce among base^k members with k ports each, beside an all-reduce by collective::Parts
/// on one port.
struct CubeCost {
  std::size_t base = 0;
  std::size_t k = 0;
  std::size_t members = 0;
  /// The bytes that one port carries, as multiples of the bytes of the vector.
  double port_share = 0;
  double parts_port_share = 0;
  /// The times without latency, as multiples of the time of the vector over a port.
  double time = 0;
  double parts_time = 0;
  /// The time of the cube if its k ports together have the bandwidth of the one port of `parts`.
  double time_of_equal_bandwidth = 0;
};

/// How fast a root sends to all members of a topology, in lanes: by packed trees, and by the
/// largest number of rings that fit into the lanes at once.
struct TopologyRates {
  std::string name;
  /// The rate from the root with the slowest trees, and the most trees of a root.
  double trees_rate = 0;
  std::size_t trees = 0;
  double rings_rate = 0;
};

/// Gossip among workers that make their steps at the same time.
struct GossipRun {
  std::size_t workers = 0;
  /// The bytes that a worker sends in a step: values, and what it knows of the others' progress.
  double value_bytes = 0;
  double progress_bytes = 0;
  /// The largest difference between two workers' values after log2(workers) steps, if they differed
  /// by up to 1 before.
  double difference = 0;
};

/// The mean time of a step among 4 workers, as a multiple of the time to compute a step.
struct OverlapRun {
  /// The time of a sum, as a multiple of the time to compute a step.
  double sum = 0;
  double step = 0;
  double overlapped_step = 0;
};

/// Local SGD, in which workers average their models each `every` steps.
struct AverageRun {
  std::size_t every = 0;
  /// The bytes of the sums of a step, as a share of those of allreduce.
  double bytes_share = 0;
};

/// Rounds of 4 workers whose step times are exponentially distributed, live and simulated.
struct LiveRounds {
  std::string exchange;
  /// The steps that each worker makes in a second.
  double steps_per_second = 0;
  double simulated_steps_per_second = 0;
  /// The share of the live workers' time in which they wait.
  double waiting_share = 0;
};

/// The accuracy that 8 workers reach live.
struct LearnedExchange {
  std::string exchange;
  std::string barrier;
  /// The accuracy on test data, by seed.
  std::vector<double> accuracies{};
};

struct ExchangeStudy {
  ExchangeStudyOptions options{};
  /// The largest relative difference between the bytes of a port in a ring and 2 (n - 1) / n, for n
  /// from 2 to 64.
  double ring_error = 0;
  std::vector<CubeCost> cubes{};
  std::vector<TopologyRates> topologies{};
  std::vector<GossipRun> gossip{};
  std::vector<OverlapRun> overlaps{};
  std::vector<AverageRun> averages{};
  std::vector<LiveRounds> rounds{};
  /// The first one is allreduce.
  std::vector<LearnedExchange> learning{};
};

/// Makes all runs. Returns the error of the first one that failed.
[[nodiscard]] Result<ExchangeStudy> make_exchange_study(const Registry& registry,
                                                        const ExchangeStudyOptions& options);

/// Each adds one part to a study: the computed costs, the simulations, or the live runs.
void compute_costs(ExchangeStudy& study);
[[nodiscard]] Result<void> simulate_exchanges(ExchangeStudy& study);
[[nodiscard]] Result<void> run_exchanges_live(ExchangeStudy& study, const Registry& registry);

/// Simulates `steps` rounds of 4 workers, whose messages take `latency`. `step_time` returns how
/// long a worker computes a step. Returns the mean time of a step, in seconds.
[[nodiscard]] Result<double> simulate_rounds(
    const std::string& exchange, std::uint64_t steps, core::Time latency,
    const std::function<core::Time(core::MemberId, core::Step)>& step_time);

}  // namespace starling::program
