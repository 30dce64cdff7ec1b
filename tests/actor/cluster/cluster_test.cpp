/// Clusters of nodes that find each other, in this process, over real sockets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "starling/actor/cluster/cluster_client.hpp"
#include "starling/actor/cluster/cluster_node.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/input.hpp"
#include "tests/actor/cluster/counting_plan.hpp"
#include "tests/actor/security/certificates.hpp"

namespace starling::live {
namespace {

using namespace std::chrono_literals;
using State = actor::MemberReport::State;

class Cluster : public testing::Test {
 protected:
  Cluster() : client_(ClusterClient::open({}).value()) {}

  std::size_t add() {
    ClusterOptions options;
    for (const auto& node : nodes_)
      if (node) options.seeds.push_back(node->address());
    options.name = "n" + std::to_string(nodes_.size());
    options.make_plan = make_plan;
    nodes_.push_back(ClusterNode::open(options).value());
    return nodes_.size() - 1;
  }

  void add(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add();
    ASSERT_TRUE(wait_until([&] {
      return std::ranges::all_of(nodes_,
                                 [&](auto& node) { return live_others(*node) == count - 1; });
    }));
  }

  static std::size_t live_others(ClusterNode& node) {
    const auto status = node.status();
    return static_cast<std::size_t>(std::ranges::count_if(
        status.others, [](const auto& other) { return core::is_live(other.state); }));
  }

  bool wait_until(const std::function<bool()>& holds, std::chrono::seconds within = 30s) {
    const auto give_up = std::chrono::steady_clock::now() + within;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }

  Result<wire::JobBegun> submit(std::size_t seed, const wire::JobSettings& settings) {
    return client_->ask_for<wire::JobBegun>(nodes_[seed]->address(),
                                            wire::SubmitJob{job_, settings}, 30s);
  }

  static wire::JobSettings counting(const char* mode, const char* barrier, const char* workers,
                                    const char* steps, const char* delay_ms) {
    return {{"mode", mode},
            {"barrier", barrier},
            {"workers", workers},
            {"steps", steps},
            {"delay", delay_ms}};
  }

  /// The status of every member on every node that lives.
  std::vector<wire::MemberStatus> members() {
    std::vector<wire::MemberStatus> all;
    for (auto& node : nodes_) {
      if (!node) continue;
      const auto status = node->status();
      for (const auto& job : status.jobs)
        if (job.job == job_) all.insert(all.end(), job.here.begin(), job.here.end());
    }
    return all;
  }

  bool all_done() {
    const auto all = members();
    return !all.empty() && std::ranges::all_of(all, [](const auto& member) {
      return member.state == static_cast<std::uint8_t>(State::done) ||
             member.state == static_cast<std::uint8_t>(State::excluded);
    });
  }

  core::Step lowest_step() {
    const auto all = members();
    core::Step lowest = UINT64_MAX;
    for (const auto& member : all) lowest = std::min(lowest, member.step);
    return lowest;
  }

  core::Step highest_step() {
    core::Step highest = 0;
    for (const auto& member : members()) highest = std::max(highest, member.step);
    return highest;
  }

  std::vector<core::RangeState> model() {
    std::map<core::RangeId, core::RangeState> states;
    for (auto& node : nodes_) {
      if (!node) continue;
      core::RangeId from = 0;
      do {
        auto some = client_->ask_for<wire::Ranges>(node->address(),
                                                   wire::ReadRanges{job_, from, true}, 10s);
        if (!some) break;
        for (auto& state : some->states) states[state.range] = std::move(state);
        from = some->next;
      } while (from != 0);
    }
    std::vector<core::RangeState> all;
    for (auto& [range, state] : states) all.push_back(std::move(state));
    return all;
  }

  wire::JobId job_ = 42;
  std::vector<std::unique_ptr<ClusterNode>> nodes_;
  std::unique_ptr<ClusterClient> client_;
};

TEST_F(Cluster, RunsAJobOnAllNodes) {
  add(3);
  const auto started = submit(1, counting("peer", "pssp:s=4,beta=2", "5", "100", "1"));
  ASSERT_TRUE(started) << started.error().message;
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  EXPECT_EQ(members().size(), 5U);
  const auto states = model();
  ASSERT_FALSE(states.empty());
  EXPECT_EQ(states[0].value.as<float>()[0], 500);
  expect_exact_counts(states);
}

TEST_F(Cluster, RefusesWhatNoClientMeans) {
  add(1);
  auto settings = counting("peer", "asp", "1", "10", "0");
  settings.emplace_back("note", std::string(70'000, 'x'));
  const auto long_one = submit(0, settings);
  ASSERT_FALSE(long_one);
  EXPECT_NE(long_one.error().message.find(" bytes; valid: up to 65536"), std::string::npos)
      << long_one.error().message;

  settings.pop_back();
  const std::string& node = nodes_[0]->address();
  ASSERT_TRUE(client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{7, settings, 1}, 5s));
  auto later = std::make_shared<core::Configuration>(core::first_configuration(
      {{0, 1, true, true, nodes_[0]->id()}}, make_plan(settings).value()->ranges(), 1, false));
  later->epoch = 2;
  const auto founded = client_->ask_for<wire::Done>(node, wire::StartJob{7, later}, 5s);
  ASSERT_FALSE(founded);
  EXPECT_NE(founded.error().message.find("does not fit"), std::string::npos);
}

/// A client that submits and forgets jobs cannot make a node read data for all of them at once.
TEST_F(Cluster, ReadsForAFewJobsAtATime) {
  std::promise<void> promise;
  const std::shared_future<void> enough = promise.get_future().share();
  std::atomic<int> reading = 0;
  ClusterOptions options;
  options.name = "n0";
  options.make_plan = [&reading, enough](const auto& settings) {
    ++reading;
    enough.wait();
    return make_plan(settings);
  };
  nodes_.push_back(ClusterNode::open(options).value());
  const std::string& node = nodes_[0]->address();
  const auto settings = counting("peer", "asp", "1", "10", "0");
  for (wire::JobId job = 1; job <= 4; ++job) {
    EXPECT_FALSE(
        client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{job, settings, 1}, 50ms));
    EXPECT_TRUE(client_->ask_for<wire::Done>(node, wire::CloseJob{job}, 5s));
  }
  const auto fifth =
      client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{5, settings, 1}, 5s);
  promise.set_value();
  ASSERT_FALSE(fifth);
  EXPECT_NE(fifth.error().message.find("4 jobs are being prepared"), std::string::npos)
      << fifth.error().message;
  EXPECT_EQ(reading, 4);
  EXPECT_TRUE(wait_until([&] {
    return client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{6, settings, 1}, 5s).ok();
  }));
}

/// The loop of a node stands while it founds the job's members, so the others take the node for
/// dead.
TEST_F(Cluster, StartsAJobAnewWithoutANodeThatDiesWhileItBegins) {
  add(2);
  std::promise<void> promise;
  const std::shared_future<void> enough = promise.get_future().share();
  ClusterOptions options;
  options.seeds = {nodes_[0]->address()};
  options.name = "slow";
  options.make_plan = [enough](const auto& settings) -> Result<std::shared_ptr<const JobPlan>> {
    return std::shared_ptr<const JobPlan>{std::make_shared<StandingPlan>(settings, enough)};
  };
  nodes_.push_back(ClusterNode::open(options).value());
  ASSERT_TRUE(wait_until([&] { return live_others(*nodes_[0]) == 2; }));
  ASSERT_TRUE(wait_until([&] { return live_others(*nodes_[1]) == 2; }));
  const auto began = std::chrono::steady_clock::now();
  const auto started = submit(0, counting("peer", "asp", "3", "100", "1"));
  const auto took = std::chrono::steady_clock::now() - began;
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_LT(took, 15s);
  EXPECT_EQ(started->lost, std::vector<std::string>{"slow"});
  EXPECT_NE(started->job, job_) << "what members of the first start say is not the second's";
  job_ = started->job;
  promise.set_value();
  const auto slow = std::move(nodes_.back());
  nodes_.pop_back();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  EXPECT_GE(members().size(), 3U);
  expect_exact_counts(model());
}

TEST_F(Cluster, DropsAJobThatIsClosedWhileItIsPrepared) {
  std::promise<void> promise;
  const std::shared_future<void> enough = promise.get_future().share();
  ClusterOptions options;
  options.name = "n0";
  options.make_plan = [enough](const auto& settings) {
    enough.wait();
    return make_plan(settings);
  };
  nodes_.push_back(ClusterNode::open(options).value());
  const std::string& node = nodes_[0]->address();
  const wire::SubmitJob job{job_, counting("peer", "asp", "1", "10", "0")};
  EXPECT_FALSE(client_->ask_for<wire::JobBegun>(node, job, 200ms));
  EXPECT_TRUE(client_->ask_for<wire::Done>(node, wire::CloseJob{job_}, 5s));
  const auto outcome = client_->ask_for<wire::JobBegun>(node, job, 5s);
  promise.set_value();
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("was closed meanwhile"), std::string::npos)
      << outcome.error().message;
}

TEST_F(Cluster, RefusesMoreJobsThanAClientMayHave) {
  ClusterOptions options;
  options.name = "n0";
  options.make_plan = make_plan;
  options.limits.jobs_per_client = 2;
  nodes_.push_back(ClusterNode::open(options).value());
  const auto settings = counting("peer", "asp", "1", "10", "0");
  for (job_ = 1; job_ <= 2; ++job_) ASSERT_TRUE(submit(0, settings));
  const auto third = submit(0, settings);
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().message.find("holds 2 jobs of 127.0.0.1"), std::string::npos)
      << third.error().message;
  ASSERT_TRUE(client_->ask_for<wire::Done>(nodes_[0]->address(), wire::CloseJob{1}, 5s));
  EXPECT_TRUE(submit(0, settings)) << "one was dropped";
}

TEST_F(Cluster, TellsHowNodesOfOneNameCame) {
  add(1);
  const auto twin = [&](std::vector<std::string> seeds) {
    ClusterOptions options;
    options.seeds = std::move(seeds);
    options.name = "n0";
    options.make_plan = make_plan;
    return ClusterNode::open(options).value();
  };
  const auto second = twin({nodes_[0]->address()});
  EXPECT_TRUE(wait_until([&] { return !second->refusal().empty(); }));
  EXPECT_NE(second->refusal().find("a node called n0 is there already, at " +
                                   wire::place_of(nodes_[0]->address())),
            std::string::npos)
      << second->refusal();
  EXPECT_TRUE(nodes_[0]->refusal().empty());
  EXPECT_EQ(live_others(*nodes_[0]), 0U);
}

/// Each node is a cluster of its own until it learns of the other.
TEST_F(Cluster, LeavesOneOfEachNameWhereTwoBecomeOne) {
  for (int i = 0; i < 2; ++i) {
    ClusterOptions options;
    options.name = "twin";
    options.make_plan = make_plan;
    nodes_.push_back(ClusterNode::open(options).value());
  }
  const auto bridge =
      security::Endpoint::open({}, [](const wire::FrameView&, const security::Sender&) {}).value();
  const core::NodeRecord self{.id = 7, .address = bridge->address(), .name = "bridge"};
  const core::MembershipMessage news{self, core::Gossip{}, {{nodes_[0]->status().self, 7}}};
  bridge->send(nodes_[1]->address(), wire::TrafficClass::control,
               wire::encode(wire::ControlMessage{7, bridge->address(), news}));
  const std::size_t lower = nodes_[0]->id() < nodes_[1]->id() ? 0 : 1;
  EXPECT_TRUE(wait_until([&] { return !nodes_[1 - lower]->refusal().empty(); }));
  EXPECT_TRUE(nodes_[lower]->refusal().empty());
}

/// A reader does not return, as where a file system does not answer.
TEST_F(Cluster, EndsWhateverItsReadersDo) {
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const auto released = std::make_shared<std::atomic<bool>>(false);
  const auto ended = std::make_shared<std::atomic<int>>(0);
  ClusterOptions options;
  options.name = "n0";
  options.make_plan = [=](const auto&) -> Result<std::shared_ptr<const JobPlan>> {
    ++*begun;
    while (!*released) std::this_thread::sleep_for(5ms);
    ++*ended;
    return Error{"too late"};
  };
  auto node = ClusterNode::open(options).value();
  const auto settings = counting("peer", "asp", "1", "10", "0");
  for (wire::JobId job = 1; job <= 4; ++job)
    EXPECT_FALSE(client_->ask(node->address(), wire::PrepareJob{job, settings, 1}, 50ms));
  ASSERT_TRUE(wait_until([&] { return *begun == 4; }));
  const auto start = std::chrono::steady_clock::now();
  node->leave(30s);
  EXPECT_EQ(node->end_readers(), 4U);
  node.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
  *released = true;
  EXPECT_TRUE(wait_until([&] { return *ended == 4; })) << "readers outlive their node";
}

/// Through a pipe, which the reader allows itself here.
TEST_F(Cluster, StopsReadingForAJobThatIsClosed) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(pipe[0]);
  std::atomic<bool> has_begun = false;
  std::promise<std::string> said;
  ClusterOptions options;
  options.name = "n0";
  options.make_plan = [&](const auto&) -> Result<std::shared_ptr<const JobPlan>> {
    ReadLimits limits = ReadScope::limits();
    EXPECT_TRUE(std::exchange(limits.regular_only, false)) << "a node reads no pipes";
    const ReadScope scope{limits};
    has_begun = true;
    auto text = read_text(path, 1U << 20U);
    said.set_value(text ? "all is read" : text.error().message);
    return Error{"nothing"};
  };
  nodes_.push_back(ClusterNode::open(options).value());
  const std::string& node = nodes_[0]->address();
  EXPECT_FALSE(
      client_->ask(node, wire::PrepareJob{1, counting("peer", "asp", "1", "9", "0"), 1}, 50ms));
  ASSERT_TRUE(wait_until([&] { return has_begun.load(); }));
  ASSERT_TRUE(client_->ask_for<wire::Done>(node, wire::CloseJob{1}, 5s));
  auto end = said.get_future();
  ASSERT_EQ(end.wait_for(5s), std::future_status::ready);
  EXPECT_EQ(end.get(), path + ": is read no further: nobody wants it");
  for (const int fd : pipe) ::close(fd);
}

TEST_F(Cluster, TellsNewcomersHowOldAJobIs) {
  add(2);
  ASSERT_TRUE(submit(0, counting("peer", "asp", "2", "100000", "5")));
  const auto age = [&](std::size_t node) -> std::uint64_t {
    const auto facts =
        client_->ask_for<wire::JobFacts>(nodes_[node]->address(), wire::AskJob{job_}, 5s);
    return facts ? facts->age_ms : 0;
  };
  ASSERT_TRUE(wait_until([&] { return age(0) >= 1000; }));
  const std::size_t newcomer = add();
  ASSERT_TRUE(wait_until([&] { return age(newcomer) > 0; }));
  EXPECT_GE(age(newcomer), 1000U);
}

TEST(KeyedCluster, DoesNotLetClientsSpeakAsNodes) {
  const security::ClusterKey cluster = security::make_cluster_key();
  const wire::KeyPair gate = wire::make_keys();
  const auto secrets_of = [&](const std::string& name, security::Role role) {
    security::NodeSecrets secrets;
    secrets.cluster = cluster.public_key;
    secrets.gate = gate;
    secrets.keys = wire::make_keys();
    secrets.certificate = security::certificate_for(name, secrets.keys.public_key, cluster, role);
    return secrets;
  };
  const auto time = [] { return security::now; };
  ClusterOptions options;
  options.network = {.secrets = secrets_of("node", security::Role::node), .utc_now = time};
  options.make_plan = make_plan;
  const auto node = ClusterNode::open(options).value();
  std::atomic<int> replies = 0;
  const auto client = security::Endpoint::open(
      {.secrets = secrets_of("client", security::Role::client), .utc_now = time},
      [&](const wire::FrameView&, const security::Sender&) { ++replies; });
  ASSERT_TRUE(client);
  const auto say = [&](auto body) {
    (*client)->send(node->address(), wire::TrafficClass::control,
                    wire::encode(wire::ControlMessage{7, (*client)->address(), std::move(body)}));
  };
  const core::NodeRecord self{.id = 7, .address = (*client)->address(), .name = "client"};
  say(core::MembershipMessage{self, core::Gossip{}});
  say(wire::Request{1, wire::PrepareJob{42, {{"mode", "peer"}}}});
  say(wire::Request{2, wire::StartJob{42, nullptr}});
  say(wire::Reply{3, wire::Done{}});
  say(wire::Request{4, wire::AskStatus{}});
  for (int i = 0; i < 10'000 && replies == 0; ++i) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(replies, 1) << "clients may ask how it stands, and nothing else of these";
  EXPECT_TRUE(node->status().others.empty());
}

TEST_F(Cluster, RefusesAJobThatANodeCannotPrepare) {
  add(2);
  const auto started = submit(0, {});
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("there is nothing to count"), std::string::npos);
}

TEST_F(Cluster, GoesOnWhenANodeDies) {
  add(4);
  const auto settings = counting("peer", "pssp:s=4,beta=2", "4", "400", "4");
  ASSERT_TRUE(submit(0, settings));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  nodes_[0].reset();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 400U);
  const auto states = model();
  EXPECT_EQ(states.size(), CountingPlan{settings}.ranges());
  expect_exact_counts(states);
}

/// The first node has the coordinator; its successor gets the steps from the other members.
TEST_F(Cluster, GoesOnWhenTheCoordinatorsNodeDiesAndItsSuccessorsToo) {
  add(5);
  ASSERT_TRUE(submit(0, counting("central", "ssp:s=2", "5", "600", "4")));
  for (const core::Step step : {20U, 200U}) {
    ASSERT_TRUE(wait_until([&] { return highest_step() >= step; }));
    core::ConfigurationPtr now;
    for (const auto& node : nodes_)
      if (node) now = node->status().jobs.at(0).configuration;
    ASSERT_TRUE(now->coordinator);
    const std::uint64_t keeper = now->find(*now->coordinator)->node;
    const auto dead =
        std::ranges::find_if(nodes_, [&](auto& node) { return node && node->id() == keeper; });
    ASSERT_NE(dead, nodes_.end());
    dead->reset();
  }
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_TRUE(member.step == 600 || member.step == 0);
  expect_exact_counts(model());
}

TEST_F(Cluster, GoesOnWhenTheCoordinatorsNodeLeaves) {
  add(3);
  ASSERT_TRUE(submit(0, counting("central", "ssp:s=2", "3", "400", "4")));
  ASSERT_TRUE(wait_until([&] { return highest_step() >= 20; }));
  nodes_[0]->leave(20s);
  nodes_[0].reset();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_TRUE(member.step == 400 || member.step == 0);
  expect_exact_counts(model());
}

TEST_F(Cluster, TakesInANodeThatComesLater) {
  add(3);
  ASSERT_TRUE(submit(0, counting("peer", "pssp:s=4,beta=2", "3", "600", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  add();
  ASSERT_TRUE(wait_until([&] { return members().size() == 4; }));
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 600U);
  expect_exact_counts(model());
}

TEST_F(Cluster, LetsANodeLeaveInOrder) {
  add(3);
  ASSERT_TRUE(submit(0, counting("peer", "pssp:s=4,beta=2", "3", "500", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  nodes_[1]->leave(20s);
  nodes_[1].reset();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 500U);
  expect_exact_counts(model());
}

/// No other node could hold the replicas in place of the leaver.
TEST_F(Cluster, LetsOneOfTwoLeave) {
  add(2);
  ASSERT_TRUE(submit(0, counting("peer", "asp", "2", "500", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 30 && lowest_step() < 1000; }));
  const auto began = std::chrono::steady_clock::now();
  nodes_[1]->leave(60s);
  nodes_[1].reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 40s);
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  for (const auto& member : members()) EXPECT_EQ(member.step, 500U);
  expect_exact_counts(model());
}

/// A node that missed the closing of a job learns of it from the other nodes.
TEST_F(Cluster, ForgetsAJobThatIsClosedElsewhere) {
  add(2);
  const auto threads = [] {
    return std::ranges::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                                 std::filesystem::directory_iterator{});
  };
  const auto idle = threads();
  ASSERT_TRUE(submit(0, counting("peer", "asp", "2", "100000", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 10; }));
  ASSERT_TRUE(client_->ask(nodes_[0]->address(), wire::CloseJob{job_}, 10s));
  EXPECT_TRUE(wait_until([&] { return members().empty(); }));
  // Each node has one more thread, which ends jobs, and may have one that read data.
  EXPECT_TRUE(wait_until([&] { return threads() <= idle + 4; })) << threads() - idle;
  const auto again = client_->ask(
      nodes_[0]->address(), wire::PrepareJob{job_, counting("peer", "bsp", "2", "9", "0"), 2}, 10s);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "the job is closed");
}

TEST_F(Cluster, DoesNotWaitForClientsThatHaveGone) {
  const auto descriptors = [] {
    return std::ranges::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                                 std::filesystem::directory_iterator{});
  };
  add();
  const auto ask = [&] {
    const auto client = ClusterClient::open({}).value();
    EXPECT_TRUE(client->ask(nodes_[0]->address(), wire::AskStatus{}, 10s));
  };
  ask();
  const auto before = descriptors();
  for (int i = 0; i < 40; ++i) ask();
  EXPECT_TRUE(wait_until([&] { return descriptors() <= before + 10; }));
}

/// The node logs it once, since many such frames may come.
TEST(Node, SaysThatItDoesNotHearAnotherVersion) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto said = [&] {
    const std::lock_guard lock{mutex};
    return std::vector{lines};
  };
  ClusterOptions options;
  options.make_plan = make_plan;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock{mutex};
    lines.push_back(line);
  };
  const auto node = ClusterNode::open(options).value();
  const auto other = wire::Transport::open({}, [](const wire::Incoming&) {}).value();
  for (int i = 0; i < 3; ++i) {
    wire::Frame frame = wire::encode(wire::ControlMessage{});
    frame.head[2] = std::byte{wire::version + 1};
    other->send({node->address(), std::nullopt}, wire::TrafficClass::control, std::move(frame));
  }
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (said().empty() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(said(), std::vector<std::string>{"drops messages: a frame is of version " +
                                             std::to_string(wire::version + 1) +
                                             "; valid here: " + std::to_string(wire::version)});
}

}  // namespace
}  // namespace starling::live
