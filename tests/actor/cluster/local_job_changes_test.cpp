/// Tests that a job on several nodes applies each update exactly once while nodes die, join, leave
/// or are partitioned from the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "starling/actor/interfaces.hpp"
#include "tests/actor/cluster/local_jobs.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;
using core::Member;
using State = actor::MemberReport::State;

TEST(LocalJob, TheOthersGoOnWhenANodeIsKilled) {
  Nodes nodes{make_counting_job(options_of(4, 200, sampled_barrier))};
  add_peers(nodes, 4);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(2) >= 30; }));
  nodes.kill(2);
  nodes.declare_dead(2);
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  for (const std::size_t node : {0U, 1U, 3U}) EXPECT_EQ(nodes.step(node), 200U);
  nodes.expect_exact();
}

TEST(LocalJob, ANodeThatJoinsComputesAndOwns) {
  Nodes nodes{make_counting_job(options_of(3, 200, sampled_barrier))};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) >= 30; }));
  const Member joiner{3, 1, true, true};
  join(nodes, nodes.add({joiner}), joiner);
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.step(3), 200U);
  const auto owns = [](const core::Ownership& range) { return range.find(3) != nullptr; };
  EXPECT_TRUE(std::ranges::any_of(nodes.local(3).configuration()->ranges, owns));
  nodes.expect_exact();
}

TEST(LocalJob, AnOwnActorMayAskBeforeItsNodeHasJoined) {
  auto answer = std::make_shared<std::promise<core::Step>>();
  const OnStart on_start = [answer](const auto& actors, caf::actor_system& system) {
    system.spawn([answer, worker = actors->workers.at(0)](caf::event_based_actor* self) {
      self->request(worker, 20s, step_atom_v)
          .then([answer](core::Step step) { answer->set_value(step); },
                [answer](const caf::error& error) {
                  ADD_FAILURE() << caf::to_string(error);
                  answer->set_value(barrier::finished);
                });
    });
  };
  const auto make_counters = make_counting_job(options_of(3, 200, sampled_barrier));
  auto asks = std::make_shared<bool>(false);  // only the node that joins has an own actor
  Nodes nodes{[=] {
    Assignment assignment = make_counters();
    if (*asks) assignment.job.on_start = on_start;
    return assignment;
  }};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) >= 30; }));
  *asks = true;
  const Member joiner{3, 1, true, true};
  const std::size_t joining = nodes.add({joiner});
  nodes.local(joining).add_joiner(joiner, {0});
  nodes.start(joining, nodes.local(0).configuration());
  const core::Step step = answer->get_future().get();
  EXPECT_GE(step, 30U);
  EXPECT_LE(step, 200U);
}

/// An own actor of node 0 sees the worker that joins, and asks it.
TEST(LocalJob, AnOwnActorReachesAWorkerThatJoinsLater) {
  auto answer = std::make_shared<std::promise<core::Step>>();
  const OnStart on_start = [answer](const auto& actors, caf::actor_system& system) {
    EXPECT_EQ(actors->workers.size(), 3U);
    system.spawn([answer, job = actors->job](caf::event_based_actor* self) -> caf::behavior {
      self->monitor(job);
      self->set_down_handler([self](const caf::down_msg&) { self->quit(); });
      send(self, self, timer_atom_v);
      return {[=](timer_atom) {
        self->request(job, 5s, actors_atom_v).then([=](const JobActorsPtr& present) {
          if (present->workers.size() < 4) return send_later(self, self, 20ms, timer_atom_v);
          self->request(present->workers.at(3), 20s, step_atom_v)
              .then([answer](core::Step step) { answer->set_value(step); },
                    [answer](const caf::error& error) {
                      ADD_FAILURE() << caf::to_string(error);
                      answer->set_value(barrier::finished);
                    });
        });
      }};
    });
  };
  const auto make_counters = make_counting_job(options_of(3, 400, sampled_barrier));
  auto asks = std::make_shared<bool>(true);  // only node 0 has an own actor
  Nodes nodes{[=] {
    Assignment assignment = make_counters();
    if (*asks) assignment.job.on_start = on_start;
    return assignment;
  }};
  nodes.add({{0, 1, true, true}});
  *asks = false;
  for (const core::MemberId id : {1U, 2U}) nodes.add({{id, 1, true, true}});
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) >= 30; }));
  const Member joiner{3, 1, true, true};
  join(nodes, nodes.add({joiner}), joiner);
  EXPECT_LE(answer->get_future().get(), 400U);
}

TEST(LocalJob, ANodeThatLeavesHandsOverItsRanges) {
  Nodes nodes{make_counting_job(options_of(4, 200, sampled_barrier))};
  add_peers(nodes, 4);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(1) >= 30; }));
  nodes.local(1).leave();
  ASSERT_TRUE(wait_until([&] { return nodes.local(1).reports().at(0).state == State::excluded; }));
  nodes.kill(1);
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  nodes.expect_exact();
}

TEST(LocalJob, LosesNoUpdateInAPartition) {
  Nodes nodes{make_counting_job(options_of(3, 200, sampled_barrier))};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) >= 30; }));
  nodes.partition_off(1);
  std::this_thread::sleep_for(500ms);
  nodes.partition_off(std::nullopt);
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600 * full_batch);
  nodes.expect_exact();
}

TEST(LocalJob, AnExcludedMemberReturnsNoRanges) {
  Nodes nodes{make_counting_job(options_of(3, 200, sampled_barrier))};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) >= 30; }));
  EXPECT_FALSE(ranges_of(nodes.local(1)).empty());
  for (const std::size_t other : {0U, 2U}) nodes.local(other).report_liveness({1, 1, true});
  ASSERT_TRUE(wait_until([&] { return nodes.local(1).reports().at(0).state == State::excluded; }));
  EXPECT_TRUE(ranges_of(nodes.local(1)).empty());
  ASSERT_TRUE(wait_until([&] {
    return nodes.local(0).reports().at(0).state == State::done &&
           nodes.local(2).reports().at(0).state == State::done;
  }));
  expect_exact_counts(nodes.model());
}

TEST(LocalJob, AnExcludedMemberGetsNoPacketsForAnotherMemberOfItsId) {
  Nodes nodes{make_counting_job(options_of(3, 200, sampled_barrier))};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) >= 30; }));
  for (const std::size_t other : {0U, 2U}) nodes.local(other).report_liveness({1, 1, true});
  ASSERT_TRUE(wait_until([&] { return nodes.local(1).reports().at(0).state == State::excluded; }));
  const Member namesake{1, 2, true, true};
  const std::size_t elsewhere = nodes.add({namesake});
  join(nodes, elsewhere, namesake);
  ASSERT_TRUE(wait_until([&] { return nodes.step(elsewhere) > 0; }));
  const Member returning{4, 1, true, true};
  nodes.route_to(4, 1);
  join(nodes, 1, returning);
  // The returning member pulls ranges from the namesake, which has the id of the excluded member.
  ASSERT_TRUE(wait_until([&] {
    const auto reports = nodes.local(1).reports();
    return reports.size() == 2 && reports[1].state == State::done;
  }));
  EXPECT_EQ(nodes.local(1).reports().at(1).worker.step, 200U);
}

class LocalJobWithServers : public testing::TestWithParam<std::pair<core::Mode, const char*>> {};

TEST_P(LocalJobWithServers, MakesEachUpdateOnce) {
  const auto& [mode, barrier] = GetParam();
  Nodes nodes{make_counting_job(options_of(6, 100, barrier, mode, 1ms))};
  add_servers(nodes);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600 * full_batch);
}

/// Node 2 has a server and two workers. Node 0 also has the coordinator.
TEST_P(LocalJobWithServers, GoesOnWhenANodeIsKilled) {
  const auto& [mode, barrier] = GetParam();
  for (const std::size_t killed : {2U, 0U}) {
    Nodes nodes{make_counting_job(options_of(6, 100, barrier, mode, 2ms))};
    add_servers(nodes);
    nodes.start();
    ASSERT_TRUE(wait_until([&] { return nodes.step(killed) >= 20; }));
    nodes.kill(killed);
    nodes.declare_dead(killed);
    ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
    for (const std::size_t node : {0U, 1U, 2U})
      if (node != killed) {
        EXPECT_EQ(nodes.step(node), 100U);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LocalJobWithServers,
                         testing::Values(std::pair{core::Mode::central, "bsp"},
                                         std::pair{core::Mode::central, "ssp:s=2"},
                                         std::pair{core::Mode::central, "pssp:s=2,beta=2"},
                                         std::pair{core::Mode::central,
                                                   "pdssp:low=2,high=6,beta=2"},
                                         std::pair{core::Mode::hybrid, "pfluent:s=2,beta=2"},
                                         std::pair{core::Mode::hybrid, "pbsp:beta=2"},
                                         std::pair{core::Mode::hybrid, "asp"}));

}  // namespace
}  // namespace starling::actor
