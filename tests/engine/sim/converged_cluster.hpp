/// Simulated clusters whose nodes know each other, over good and bad networks. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/sim/membership/cluster.hpp"
#include "tests/sanitized.hpp"

namespace starling::sim {

using Nodes = std::vector<NodeId>;

/// Returns the options of a cluster in one data centre.
inline ClusterOptions good_network() {
  return {.link = {.latency = {laws::Exponential{std::chrono::microseconds{500}}}}};
}
/// Returns the options of a cluster whose network loses, duplicates and reorders packets.
inline ClusterOptions bad_network() {
  return {.link = {.latency = {laws::Exponential{std::chrono::milliseconds{3}}},
                   .loss = 0.1,
                   .duplication = 0.1,
                   .reordering = 0.1,
                   .delay = {laws::Exponential{std::chrono::milliseconds{20}}}}};
}

/// A cluster of `count` nodes that have known each other for 2 to 3 s.
class ConvergedCluster : public Cluster {
 public:
  ConvergedCluster(ClusterOptions options, std::size_t count, std::uint64_t seed)
      : Cluster(std::move(options), seed) {
    start_many(count);
    EXPECT_TRUE(run_until([&] { return agree(); }, std::chrono::seconds{20}))
        << "the nodes do not find each other";
    run(std::chrono::seconds{2} + Time{Random::stream(seed, 3).below(1'000'000'000)});
  }

  /// Returns how many times, since `start`, a node has declared another one dead.
  [[nodiscard]] std::size_t deaths_since(Time start) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(noticed(), [&](const NoticedChange& notice) {
          return notice.at >= start && notice.record.state == core::NodeState::dead;
        }));
  }
};

/// Runs `scenario(cluster)` with a cluster of `count` nodes for each of the seeds 1 to `seeds`;
/// under a sanitizer, for a quarter of them.
template <class Scenario>
void for_each_seed(std::uint64_t seeds, const ClusterOptions& options, std::size_t count,
                   Scenario scenario) {
  for (std::uint64_t seed = 1; seed <= seeds_to_run(seeds); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ConvergedCluster cluster{options, count, seed};
    if (testing::Test::HasFailure()) return;
    scenario(cluster);
  }
}

inline Nodes all_but(const Cluster& cluster, NodeId except) {
  Nodes nodes(cluster.size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  std::erase(nodes, except);
  return nodes;
}

}  // namespace starling::sim
