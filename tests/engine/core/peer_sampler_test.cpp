/// Every other live worker is as likely as another, alone and in pairs.
#include "starling/engine/core/membership/peer_sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace starling::core {
namespace {

NodeRecord offering(NodeId id, std::uint32_t workers, NodeState state = NodeState::alive) {
  return {
      .id = id, .address = "a", .name = {}, .workers = workers, .incarnation = 0, .state = state};
}

/// The probability of counts at least as uneven where all cells are equally likely, by Wilson and
/// Hilferty's normal deviate (PNAS 1931).
template <class Counts>
double evenness(const Counts& counts, std::size_t cells) {
  double total = 0;
  for (const auto& [unused, count] : counts) total += count;
  const double expected = total / static_cast<double>(cells);
  double chi = expected * static_cast<double>(cells - counts.size());
  for (const auto& [unused, count] : counts) chi += std::pow(count - expected, 2) / expected;
  const auto freedom = static_cast<double>(cells - 1);
  const double deviate =
      (std::cbrt(chi / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
  return 0.5 * std::erfc(deviate / std::sqrt(2.0));
}

TEST(PeerSampler, IsUniformOverWorkersAndPairsOfThemWhateverTheirNodes) {
  PeerSampler sampler;
  Random random{1};
  // Members come, change and go, so that the list has seen every kind of event.
  for (NodeId id = 1; id <= 40; ++id) sampler.set(offering(id, static_cast<std::uint32_t>(id)));
  for (NodeId id = 11; id <= 40; ++id) sampler.set(offering(id, 40, NodeState::dead));
  sampler.set(offering(3, 9));
  sampler.set(offering(9, 2));
  sampler.set(offering(4, 4, NodeState::suspect));
  // 1 + 2 + 9 + 4 + 5 + 6 + 7 + 8 + 2 + 10
  constexpr std::size_t workers = 54;
  ASSERT_EQ(sampler.workers(), workers);
  const WorkerAt self{7, 2};
  std::map<WorkerAt, double> counts;
  std::map<std::pair<WorkerAt, WorkerAt>, double> pairs;
  std::vector<WorkerAt> drawn;
  for (int i = 0; i < 60'000; ++i) {
    sampler.draw(self, 5, random, drawn);
    ASSERT_EQ(drawn.size(), 5U);
    for (const WorkerAt& one : drawn) {
      ASSERT_NE(one, self);
      ++counts[one];
      for (const WorkerAt& other : drawn)
        if (one < other) ++pairs[{one, other}];
    }
  }
  EXPECT_EQ(counts.size(), workers - 1) << "those on its own node too";
  EXPECT_GT(evenness(counts, workers - 1), 0.01);
  EXPECT_GT(evenness(pairs, (workers - 1) * (workers - 2) / 2), 0.01);
}

/// The test above can fail: a draw of nodes, then of their workers, it would not pass.
TEST(PeerSampler, WouldBeFoundOutIfItDrewNodes) {
  Random random{2};
  std::map<WorkerAt, double> counts;
  for (int i = 0; i < 60'000; ++i) {
    const NodeId node = random.below(10) + 1;
    ++counts[{node, static_cast<std::uint32_t>(random.below(node))}];
  }
  EXPECT_LT(evenness(counts, 55), 1e-6);
}

TEST(PeerSampler, DrawsAllOthersWhereThereAreFewer) {
  PeerSampler sampler;
  Random random{3};
  std::vector<WorkerAt> drawn{{5, 5}};
  sampler.draw({1, 0}, 3, random, drawn);
  EXPECT_TRUE(drawn.empty());
  sampler.set(offering(1, 2));
  sampler.set(offering(2, 1));
  sampler.draw({1, 1}, 10, random, drawn);
  EXPECT_EQ((std::set<WorkerAt>{drawn.begin(), drawn.end()}), (std::set<WorkerAt>{{1, 0}, {2, 0}}));
  sampler.set(offering(2, 1, NodeState::left));
  sampler.draw({1, 1}, 10, random, drawn);
  EXPECT_EQ(drawn, (std::vector<WorkerAt>{{1, 0}}));
  sampler.draw({9, 0}, 10, random, drawn);
  EXPECT_EQ(drawn.size(), 2U) << "whoever is no member itself may draw anyone";
}

TEST(PeerSampler, IsWhatItIsToldInTheEndWhateverCameBefore) {
  PeerSampler sampler;
  Random random{4};
  std::map<NodeId, std::uint32_t> expected;
  std::vector<WorkerAt> drawn;
  for (int i = 0; i < 20'000; ++i) {
    const NodeId id = random.below(20) + 1;
    const auto workers = static_cast<std::uint32_t>(random.below(7));
    const bool dies = random.below(4) == 0;
    sampler.set(offering(id, workers, dies ? NodeState::dead : NodeState::alive));
    expected[id] = dies ? 0 : workers;
    sampler.draw({random.below(20) + 1, 0}, random.below(10), random, drawn);
  }
  sampler.draw({}, sampler.workers(), random, drawn);
  std::set<WorkerAt> all;
  for (const auto& [id, workers] : expected)
    for (std::uint32_t index = 0; index < workers; ++index) all.insert({id, index});
  EXPECT_EQ((std::set<WorkerAt>{drawn.begin(), drawn.end()}), all);
  EXPECT_EQ(drawn.size(), all.size());
}

TEST(PeerSampler, IsBoundedWhateverMembersClaim) {
  PeerSampler sampler{100};
  sampler.set(offering(1, 60));
  sampler.set(offering(2, 4'000'000'000U));
  EXPECT_EQ(sampler.workers(), 100U);
  sampler.set(offering(2, 0));
  EXPECT_EQ(sampler.workers(), 60U);
}

}  // namespace
}  // namespace starling::core
