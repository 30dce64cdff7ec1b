/// Tests clusters of nodes that find each other and run jobs while nodes join, leave and die.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/wire/transport.hpp"
#include "tests/actor/cluster/cluster.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

TEST_F(Cluster, RunsAJobOnAllNodes) {
  add(3);
  const auto started = submit(1, counting_settings("peer", "pssp:s=4,beta=2", "5", "100", "1"));
  ASSERT_TRUE(started) << started.error().message;
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  EXPECT_EQ(members().size(), 5U);
  const auto states = model();
  ASSERT_FALSE(states.empty());
  EXPECT_EQ(states[0].value.as<float>()[0], 500 * full_batch);
  expect_exact_counts(states);
}

/// The event loop of the node "slow" is blocked while it starts its members, so the others declare
/// the node dead.
TEST_F(Cluster, StartsAJobAgainWithoutANodeThatDiesDuringItsStart) {
  add(2);
  std::promise<void> promise;
  const std::shared_future<void> released = promise.get_future().share();
  ClusterOptions options;
  options.seeds = {nodes_[0]->address()};
  options.name = "slow";
  options.prepare_job =
      [released](const auto& settings) -> Result<std::shared_ptr<const PreparedJob>> {
    return std::shared_ptr<const PreparedJob>{std::make_shared<DelayedJob>(settings, released)};
  };
  nodes_.push_back(ClusterNode::open(options).value());
  ASSERT_TRUE(wait_until([&] { return live_others(*nodes_[0]) == 2; }));
  ASSERT_TRUE(wait_until([&] { return live_others(*nodes_[1]) == 2; }));
  const auto began = std::chrono::steady_clock::now();
  const auto started = submit(0, counting_settings("peer", "asp", "3", "100", "1"));
  const auto took = std::chrono::steady_clock::now() - began;
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_LT(took, 15s);
  EXPECT_EQ(started->lost, std::vector<std::string>{"slow"});
  EXPECT_NE(started->job, job_) << "messages of the first start must not reach the second";
  job_ = started->job;
  promise.set_value();
  const auto slow = std::move(nodes_.back());
  nodes_.pop_back();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  EXPECT_GE(members().size(), 3U);
  expect_exact_counts(model());
}

/// The request to start job 7 reaches node 1 late. The node joins job 8, which it has not prepared,
/// so it has looked for jobs since job 7 started on node 0.
TEST_F(Cluster, DoesNotJoinAJobInWhichItHasMembersFromTheBeginning) {
  add(2);
  const auto settings = counting_settings("peer", "asp", "2", "100000", "5");
  const auto start = [&](wire::JobId job, std::size_t node, std::vector<core::Member> members) {
    const auto ranges = prepare_counting_job(settings).value()->ranges();
    const auto first = std::make_shared<const core::Configuration>(
        core::first_configuration(std::move(members), ranges, 1, false));
    return client_->ask_for<wire::Done>(nodes_[node]->address(), wire::StartJob{job, first}, 5s)
        .ok();
  };
  const auto prepare = [&](wire::JobId job, std::size_t node) {
    return client_
        ->ask_for<wire::JobPrepared>(nodes_[node]->address(), wire::PrepareJob{job, settings, 2},
                                     5s)
        .ok();
  };
  const auto members_at_1 = [&](wire::JobId job) {
    std::vector<core::MemberId> ids;
    for (const auto& status : nodes_[1]->status().jobs)
      if (status.job == job)
        for (const auto& member : status.local_members) ids.push_back(member.member);
    return ids;
  };
  const std::vector<core::Member> both{{0, 1, true, true, nodes_[0]->id()},
                                       {1, 1, true, true, nodes_[1]->id()}};
  ASSERT_TRUE(prepare(7, 0) && prepare(7, 1) && prepare(8, 0));
  ASSERT_TRUE(start(7, 0, both));
  ASSERT_TRUE(start(8, 0, {both[0]}));
  ASSERT_TRUE(wait_until([&] { return !members_at_1(8).empty(); }));
  EXPECT_TRUE(members_at_1(7).empty());
  ASSERT_TRUE(start(7, 1, both));
  EXPECT_TRUE(wait_until([&] { return members_at_1(7) == std::vector<core::MemberId>{1}; }));
}

TEST_F(Cluster, RefusesAJobOfTooManyMembers) {
  add(1);
  const auto refused = submit(0, counting_settings("central", "asp", "256", "10", "0"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the job would have 258 members (workers, servers and a "
                                         "coordinator); valid: up to 256"),
            std::string::npos)
      << refused.error().message;
}

/// A user's code may throw anything.
TEST_F(Cluster, GoesOnIfTheCodeOfAJobThrowsANumber) {
  ClusterOptions options;
  options.name = "n0";
  options.prepare_job = [](const auto& settings) {
    if (settings.front().second == "hybrid") throw 7;
    return prepare_counting_job(settings);
  };
  nodes_.push_back(ClusterNode::open(options).value());
  const auto refused = submit(0, counting_settings("hybrid", "asp", "1", "10", "0"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("an exception of unknown type"), std::string::npos)
      << refused.error().message;
  ++job_;
  EXPECT_TRUE(submit(0, counting_settings("peer", "asp", "1", "10", "0")));
}

TEST_F(Cluster, RefusesASecondNodeOfTheSameName) {
  add(1);
  const auto twin = [&](std::vector<std::string> seeds) {
    ClusterOptions options;
    options.seeds = std::move(seeds);
    options.name = "n0";
    options.prepare_job = prepare_counting_job;
    return ClusterNode::open(options).value();
  };
  const auto second = twin({nodes_[0]->address()});
  EXPECT_TRUE(wait_until([&] { return !second->refusal().empty(); }));
  EXPECT_NE(second->refusal().find("a node called n0 is there already, at " +
                                   wire::without_key(nodes_[0]->address())),
            std::string::npos)
      << second->refusal();
  EXPECT_TRUE(nodes_[0]->refusal().empty());
  EXPECT_EQ(live_others(*nodes_[0]), 0U);
}

/// Each of the two nodes is a cluster of its own until the test sends it gossip about the other.
TEST_F(Cluster, RefusesOneOfTwoNodesOfTheSameNameWhenClustersMerge) {
  for (int i = 0; i < 2; ++i) {
    ClusterOptions options;
    options.name = "twin";
    options.prepare_job = prepare_counting_job;
    nodes_.push_back(ClusterNode::open(options).value());
  }
  const auto bridge =
      security::Endpoint::open({}, [](const wire::FrameView&, const security::Sender&) {}).value();
  const core::NodeRecord self{.id = 7, .address = bridge->address(), .name = "bridge"};
  const core::MembershipMessage gossip{self, core::Gossip{}, {{nodes_[0]->status().self, 7}}};
  bridge->send(nodes_[1]->address(), wire::TrafficClass::control,
               wire::encode(wire::ControlMessage{7, bridge->address(), gossip}));
  const std::size_t lower = nodes_[0]->id() < nodes_[1]->id() ? 0 : 1;
  EXPECT_TRUE(wait_until([&] { return !nodes_[1 - lower]->refusal().empty(); }));
  EXPECT_TRUE(nodes_[lower]->refusal().empty());
}

TEST_F(Cluster, GoesOnWhenANodeDies) {
  add(4);
  const auto settings = counting_settings("peer", "pssp:s=4,beta=2", "4", "400", "4");
  ASSERT_TRUE(submit(0, settings));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  nodes_[0].reset();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 400U);
  const auto states = model();
  EXPECT_EQ(states.size(), CountingJob{settings}.ranges());
  expect_exact_counts(states);
}

/// The coordinator is on the first node. Its successor receives the steps from the other members.
TEST_F(Cluster, GoesOnWhenTheCoordinatorsNodeDiesAndItsSuccessorsToo) {
  add(5);
  ASSERT_TRUE(submit(0, counting_settings("central", "ssp:s=2", "5", "600", "4")));
  for (const core::Step step : {20U, 200U}) {
    ASSERT_TRUE(wait_until([&] { return highest_step() >= step; }));
    core::ConfigurationPtr current;
    for (const auto& node : nodes_)
      if (node) current = node->status().jobs.at(0).configuration;
    ASSERT_TRUE(current->coordinator);
    const std::uint64_t id = current->find(*current->coordinator)->node;
    const auto coordinators_node =
        std::ranges::find_if(nodes_, [&](auto& node) { return node && node->id() == id; });
    ASSERT_NE(coordinators_node, nodes_.end());
    coordinators_node->reset();
  }
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_TRUE(member.step == 600 || member.step == 0);
  expect_exact_counts(model());
}

TEST_F(Cluster, GoesOnWhenTheCoordinatorsNodeLeaves) {
  add(3);
  ASSERT_TRUE(submit(0, counting_settings("central", "ssp:s=2", "3", "400", "4")));
  ASSERT_TRUE(wait_until([&] { return highest_step() >= 20; }));
  nodes_[0]->leave(20s);
  nodes_[0].reset();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_TRUE(member.step == 400 || member.step == 0);
  expect_exact_counts(model());
}

TEST_F(Cluster, LetsALaterNodeJoinARunningJob) {
  add(3);
  ASSERT_TRUE(submit(0, counting_settings("peer", "pssp:s=4,beta=2", "3", "600", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  add();
  ASSERT_TRUE(wait_until([&] { return members().size() == 4; }));
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 600U);
  expect_exact_counts(model());
}

TEST_F(Cluster, LetsANodeLeaveInOrder) {
  add(3);
  ASSERT_TRUE(submit(0, counting_settings("peer", "pssp:s=4,beta=2", "3", "500", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  nodes_[1]->leave(20s);
  nodes_[1].reset();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 500U);
  expect_exact_counts(model());
}

/// There is no other node for a second replica of each range, so the leaving node must not wait for
/// one.
TEST_F(Cluster, LetsOneOfTwoNodesLeave) {
  add(2);
  ASSERT_TRUE(submit(0, counting_settings("peer", "asp", "2", "500", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  const auto began = std::chrono::steady_clock::now();
  nodes_[1]->leave(60s);
  nodes_[1].reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 40s);
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 500U);
  expect_exact_counts(model());
}

/// The third node joins the cluster but not the job, which has ended, so nobody can take ranges
/// over.
TEST_F(Cluster, LetsANodeLeaveAJobThatHasEndedAndThatNoOtherNodeJoins) {
  add(2);
  ASSERT_TRUE(submit(0, counting_settings("peer", "asp", "2", "5", "0")));
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  add();
  ASSERT_TRUE(wait_until([&] { return live_others(*nodes_[1]) == 2; }));
  const auto began = std::chrono::steady_clock::now();
  nodes_[1]->leave(30s);
  nodes_[1].reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 15s);
}

TEST_F(Cluster, JoinsThroughASeedNodeThatHasComeBackAtAnotherAddress) {
  add();
  ClusterOptions options;
  options.name = "n1";
  options.seeds = {"tcp://127.0.0.1:1"};  // nobody listens there
  options.prepare_job = prepare_counting_job;
  nodes_.push_back(ClusterNode::open(options).value());
  nodes_[1]->set_seeds({});
  nodes_[1]->set_seeds({nodes_[1]->address()});
  nodes_[1]->set_seeds({nodes_[1]->address(), nodes_[0]->address()});
  EXPECT_TRUE(wait_until([&] { return live_others(*nodes_[1]) == 1; }));
}

/// A node logs this error once, because many such frames may arrive.
TEST(Node, LogsOnceThatItDropsFramesOfAnotherVersion) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto logged = [&] {
    const std::lock_guard lock{mutex};
    return std::vector{lines};
  };
  ClusterOptions options;
  options.prepare_job = prepare_counting_job;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock{mutex};
    lines.push_back(line);
  };
  const auto node = ClusterNode::open(options).value();
  std::atomic<bool> has_answered = false;
  const auto other =
      wire::Transport::open({}, [&](const wire::IncomingFrame&) { has_answered = true; }).value();
  const auto send = [&](wire::Frame frame) {
    other->send({node->address(), std::nullopt}, wire::TrafficClass::control, std::move(frame));
  };
  for (int i = 0; i < 3; ++i) {
    wire::Frame frame = wire::encode(wire::ControlMessage{});
    frame.head[2] = std::byte{wire::version + 1};
    send(std::move(frame));
  }
  // A node handles the frames of one connection in order.
  send(
      wire::encode(wire::ControlMessage{0, other->address(), wire::Request{1, wire::GetStatus{}}}));
  ASSERT_TRUE(wait_until([&] { return has_answered.load(); })) << "the last frame is valid";
  EXPECT_EQ(logged(), std::vector<std::string>{"drops messages: a frame is of version " +
                                               std::to_string(wire::version + 1) +
                                               "; valid here: " + std::to_string(wire::version)});
}

/// The others may have taken the node for dead before the job began.
TEST_F(Cluster, JoinsAJobThatItHasPreparedAndThatBeganWithoutIt) {
  add(2);
  const auto settings = counting_settings("peer", "asp", "1", "100000", "5");
  const core::ConfigurationPtr first = std::make_shared<const core::Configuration>(
      core::first_configuration({{0, 1, true, true, nodes_[0]->id()}},
                                prepare_counting_job(settings).value()->ranges(), 1, false));
  for (const auto& node : nodes_)
    ASSERT_TRUE(client_->ask_for<wire::JobPrepared>(node->address(),
                                                    wire::PrepareJob{job_, settings, 2}, 5s));
  ASSERT_TRUE(client_->ask_for<wire::Done>(nodes_[0]->address(), wire::StartJob{job_, first}, 5s));
  EXPECT_TRUE(wait_until([&] { return members().size() == 2; }));
}

TEST_F(Cluster, NeedNotJoinAJobThatIsStoppedWhileItPrepares) {
  add(1);
  ASSERT_TRUE(submit(0, counting_settings("peer", "asp", "1", "100000", "5")));
  std::promise<void> promise;
  ClusterOptions options;
  options.seeds = {nodes_[0]->address()};
  options.name = "n1";
  options.prepare_job = [released = promise.get_future().share()](const auto& settings) {
    released.wait();
    return prepare_counting_job(settings);
  };
  nodes_.push_back(ClusterNode::open(options).value());
  EXPECT_TRUE(wait_until([&] { return !nodes_[1]->status().jobs.empty(); }));
  const auto stopped = client_->ask_for<wire::Done>(nodes_[1]->address(), wire::StopJob{job_}, 5s);
  EXPECT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(nodes_[1]->status().jobs.empty());
  promise.set_value();
}

}  // namespace
}  // namespace starling::actor
