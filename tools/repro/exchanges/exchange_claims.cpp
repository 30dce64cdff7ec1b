#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "starling/tools/report/statistics.hpp"
#include "starling/tools/repro/exchanges/exchange_report.hpp"

namespace starling::program {
namespace {

/// The largest difference between exact figures that counts as rounding.
constexpr double rounding = 1e-9;

class ExchangeClaims {
 public:
  void add(const std::string& finding, const std::string& published, const std::string& here,
           bool holds, const std::string& live = not_run_live) {
    claims_.push_back(
        {{finding, published, here, holds ? ClaimStatus::reproduced : ClaimStatus::not_reproduced},
         live});
  }
  [[nodiscard]] std::vector<ComparedClaim> take() && { return std::move(claims_); }

 private:
  std::vector<ComparedClaim> claims_;
};

void add_costs(ExchangeClaims& list, const ExchangeStudy& study) {
  list.add("Ring (Patarasuk and Yuan 2009): a port carries 2 (n - 1) / n vectors, n = 2 to 64",
           "exact", fmt::format("largest error {:.0e}", study.ring_error),
           study.ring_error < rounding);
  const auto holds = [&](auto ratio, auto expected) {
    return std::ranges::all_of(study.cubes, [&](const CubeCost& cube) {
      return std::abs(ratio(cube) / expected(cube) - 1) < rounding;
    });
  };
  const auto one_kth = [](const CubeCost& cube) { return 1.0 / static_cast<double>(cube.k); };
  const auto text = [&](bool is_true, const char* what) {
    return fmt::format("{} on {} of {} cubes", what, is_true ? "all" : "not all",
                       study.cubes.size());
  };
  const bool bytes =
      holds([](const CubeCost& c) { return c.port_share / c.parts_port_share; }, one_kth);
  list.add(
      "BML (Wang et al. 2018): bytes per port of a BCube with k ports, as a share of those of a "
      "sharded parameter server",
      "1/k", text(bytes, "1/k"), bytes);
  const bool time = holds([](const CubeCost& c) { return c.time / c.parts_time; }, one_kth);
  list.add("BML: time without latency, at equal ports, as a share of a sharded server's", "1/k",
           text(time, "1/k"), time);
  const bool equal =
      holds([](const CubeCost& c) { return c.time_of_equal_bandwidth / c.parts_time; },
            [](const CubeCost&) { return 1.0; });
  list.add("BML: nothing is gained if the k ports together are as fast as the server's one", "1",
           text(equal, "1"), equal);
  const TopologyRates& all = study.topologies.front();
  list.add("Blink (Wang et al. 2020): packed trees use the lanes of a DGX-1V", "6 lanes, 6 trees",
           fmt::format("{:.2f} lanes, {} trees", all.trees_rate, all.trees),
           all.trees_rate >= 5.9 && all.trees <= 6);
  list.add("Blink: on all 8 devices, trees are no faster than rings", "1",
           fmt::format("{:.2f}", all.trees_rate / all.rings_rate),
           std::abs(all.trees_rate / all.rings_rate - 1) < 0.02);
  const TopologyRates& six = study.topologies.back();
  list.add("Blink: on 6 devices, trees send at least twice as fast as a ring of one lane (" +
               six.name + ")",
           "2 or more",
           fmt::format("{:.2f}; {:.2f} times all {:.0f} rings that have lanes of their own",
                       six.trees_rate, six.trees_rate / six.rings_rate, six.rings_rate),
           six.trees_rate >= 2);
}

void add_gossip(ExchangeClaims& list, const ExchangeStudy& study) {
  double difference = 0;
  double least = study.gossip.front().value_bytes;
  double most = least;
  for (const GossipRun& run : study.gossip) {
    difference = std::max(difference, run.difference);
    least = std::min(least, run.value_bytes);
    most = std::max(most, run.value_bytes);
  }
  list.add(
      fmt::format("SGP (Assran et al. 2019): 2^m workers have the exact average after m steps, "
                  "2^m = {} to {}",
                  study.gossip.front().workers, study.gossip.back().workers),
      "exact", fmt::format("largest difference {:.0e}", difference), difference < rounding);
  list.add("SGP: the model's bytes that a worker sends in a step do not grow with the workers",
           "flat", fmt::format("within {:.1f} %", 100 * (most / least - 1)), most / least < 1.05);
}

void add_rounds(ExchangeClaims& list, const ExchangeStudy& study) {
  double overlapped = 0;
  double one_by_one = 0;
  for (const OverlapRun& run : study.overlaps) {
    overlapped = std::max(overlapped, std::abs(run.overlapped_step / std::max(run.sum, 1.0) - 1));
    one_by_one = std::max(one_by_one, std::abs(run.step / (run.sum + 1) - 1));
  }
  list.add(
      "HPSGD (Zhou et al. 2020): a step takes the longer of computing and summing; without "
      "overlap, both",
      "the longer", fmt::format("within {:.1f} %; {:.1f} %", 100 * overlapped, 100 * one_by_one),
      overlapped < 0.1 && one_by_one < 0.1);
  const LiveRounds& plain = study.rounds.front();
  const LiveRounds& ahead = study.rounds.back();
  const double simulated = ahead.simulated_steps_per_second / plain.simulated_steps_per_second;
  list.add(
      "HPSGD: overlap absorbs a part of the jitter, too: steps a second under exponential "
      "step times, as a multiple of those without",
      "above 1", fmt::format("{:.2f}", simulated), simulated > 1.02,
      fmt::format("{:.2f}", ahead.steps_per_second / plain.steps_per_second));
}

void add_averages(ExchangeClaims& list, const ExchangeStudy& study) {
  double error = 0;
  for (const AverageRun& run : study.averages)
    error = std::max(error, std::abs(run.bytes_share * static_cast<double>(run.every) - 1));
  const AverageRun& last = study.averages.back();
  list.add("Local SGD (Stich 2019): bytes fall as 1/every; 98 % less needs every = 50 or more",
           "1/every",
           fmt::format("within {:.1f} %; {:.1f} % less at every = {}", 100 * error,
                       100 * (1 - last.bytes_share), last.every),
           error < 0.05);
}

void add_learning(ExchangeClaims& list, const ExchangeStudy& study) {
  const double best = compute_statistics(study.learning.front().accuracies).mean;
  for (const LearnedExchange& run : study.learning) {
    if (&run == &study.learning.front()) continue;
    const double accuracy = compute_statistics(run.accuracies).mean;
    list.add(run.exchange + " under " + run.barrier +
                 " learns as well as allreduce: accuracy, in points",
             "within 1", "not simulated", accuracy > best - 0.01,
             fmt::format("{:+.1f}", 100 * (accuracy - best)));
  }
}

}  // namespace

std::vector<ComparedClaim> exchange_claims(const ExchangeStudy& study) {
  ExchangeClaims list;
  add_costs(list, study);
  add_gossip(list, study);
  add_rounds(list, study);
  add_averages(list, study);
  add_learning(list, study);
  return std::move(list).take();
}

}  // namespace starling::program
