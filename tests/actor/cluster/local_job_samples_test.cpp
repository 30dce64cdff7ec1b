/// Tests that the members of a job on several nodes take each sample of each epoch once while nodes
/// die, join and leave.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string_view>

#include "tests/actor/cluster/local_jobs.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;
using core::Member;
using State = actor::MemberReport::State;

constexpr int epochs = 6;
constexpr std::size_t samples = 1200;

class LocalJobSamples : public testing::TestWithParam<std::pair<core::Mode, const char*>> {
 protected:
  LocalJobSamples() : nodes_{make_job()} {
    if (GetParam().first == core::Mode::peer)
      add_peers(nodes_, 6);
    else
      add_servers(nodes_);
    nodes_.start();
  }

  static MakeJob make_job() {
    const auto& [mode, barrier] = GetParam();
    TrainOptions options = options_of(6, barrier::unlimited, barrier, mode, 2ms);
    options.epochs = epochs;
    return [options, data = std::make_shared<models::Table>(load("linear:d=2,n=1200"))] {
      return counting_assignment<SampleCounters>(*data, options);
    };
  }

  /// Returns how often each sample was taken, once all members are done.
  std::vector<int> counts() {
    EXPECT_TRUE(wait_until([&] { return nodes_.all_are(State::done); }));
    std::vector<int> counts;
    for (const core::RangeState& state : nodes_.model())
      for (const float count : state.value.as<float>()) counts.push_back(static_cast<int>(count));
    return counts;
  }

  Nodes nodes_;
};

TEST_P(LocalJobSamples, AreEachTakenOnceAnEpochIfANodeJoins) {
  ASSERT_TRUE(wait_until([&] { return nodes_.step(1) >= 20; }));
  const Member joiner{12, 1, true, GetParam().first == core::Mode::peer};
  join(nodes_, nodes_.add({joiner}), joiner);
  EXPECT_EQ(counts(), std::vector<int>(samples, epochs));
  // Under asp, one worker may make more steps than another.
  if (std::string_view{GetParam().second} == "asp") return;
  EXPECT_LT(nodes_.step(1), 120U) << "six workers alone would make 120 steps each";
}

TEST_P(LocalJobSamples, AreEachTakenOnceAnEpochIfANodeLeaves) {
  ASSERT_TRUE(wait_until([&] { return nodes_.step(1) >= 20; }));
  nodes_.local(1).leave();
  ASSERT_TRUE(wait_until([&] {
    const auto reports = nodes_.local(1).reports();
    return std::ranges::all_of(reports, [](const auto& r) { return r.state == State::excluded; });
  }));
  nodes_.kill(1);
  EXPECT_EQ(counts(), std::vector<int>(samples, epochs));
  EXPECT_GT(nodes_.step(0), 120U) << "the others do the work of those that have left";
}

TEST_P(LocalJobSamples, AreLostOnlyWithUpdatesInFlightIfANodeDies) {
  ASSERT_TRUE(wait_until([&] { return nodes_.step(1) >= 20; }));
  const std::size_t workers_lost = GetParam().first == core::Mode::peer ? 1 : 2;
  nodes_.kill(1);
  nodes_.declare_dead(1);
  const std::vector<int> taken = counts();
  EXPECT_EQ(std::ranges::max(taken), epochs);
  const auto sum = static_cast<std::size_t>(std::accumulate(taken.begin(), taken.end(), 0));
  EXPECT_GE(sum + workers_lost * full_batch, epochs * samples);
  EXPECT_GT(nodes_.step(0), 120U);
}

INSTANTIATE_TEST_SUITE_P(Modes, LocalJobSamples,
                         testing::Values(std::pair{core::Mode::peer, "pssp:s=4,beta=2"},
                                         std::pair{core::Mode::peer, "asp"},
                                         std::pair{core::Mode::peer, "pdssp:low=2,high=6,beta=2"},
                                         std::pair{core::Mode::central, "bsp"},
                                         std::pair{core::Mode::central, "ssp:s=2"},
                                         std::pair{core::Mode::hybrid, "pbsp:beta=2"}));

}  // namespace
}  // namespace starling::actor
