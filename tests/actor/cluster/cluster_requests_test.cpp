/// Tests how nodes answer valid and invalid requests of clients and of other nodes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/input.hpp"
#include "tests/actor/cluster/cluster.hpp"
#include "tests/actor/security/certificates.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

TEST_F(Cluster, RefusesTooLongSettingsAndAConfigurationThatDoesNotFit) {
  add(1);
  auto settings = counting_settings("peer", "asp", "1", "10", "0");
  settings.emplace_back("note", std::string(70'000, 'x'));
  const auto too_long = submit(0, settings);
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().message.find(" bytes; valid: up to 65536"), std::string::npos)
      << too_long.error().message;

  settings.pop_back();
  auto too_many = settings;
  too_many.resize(20'000);
  const auto refused = submit(0, too_many);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("20000 settings; valid: up to 16384"), std::string::npos);
  const std::string& node = nodes_[0]->address();
  ASSERT_TRUE(client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{7, settings, 1}, 5s));
  auto later = std::make_shared<core::Configuration>(
      core::first_configuration({{0, 1, true, true, nodes_[0]->id()}},
                                prepare_counting_job(settings).value()->ranges(), 1, false));
  later->epoch = 2;
  const auto started = client_->ask_for<wire::Done>(node, wire::StartJob{7, later}, 5s);
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("does not fit"), std::string::npos);
}

/// Job 7 runs before the node leaves; job 8 is only prepared.
TEST_F(Cluster, StartsNoPreparedJobOnceItLeaves) {
  add(1);
  const auto settings = counting_settings("peer", "asp", "1", "100000", "5");
  const std::string& node = nodes_[0]->address();
  const core::ConfigurationPtr first = std::make_shared<const core::Configuration>(
      core::first_configuration({{0, 1, true, true, nodes_[0]->id()}},
                                prepare_counting_job(settings).value()->ranges(), 1, false));
  for (const wire::JobId job : {7U, 8U})
    ASSERT_TRUE(client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{job, settings, 1}, 5s));
  ASSERT_TRUE(client_->ask_for<wire::Done>(node, wire::StartJob{7, first}, 5s));
  nodes_[0]->leave(500ms);
  EXPECT_TRUE(client_->ask_for<wire::Done>(node, wire::StartJob{7, first}, 5s));
  const auto refused = client_->ask_for<wire::Done>(node, wire::StartJob{8, first}, 5s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "this node is leaving");
}

/// A client that submits and closes many jobs cannot make a node read the data of all of them at
/// the same time: further jobs wait.
TEST_F(Cluster, ReadsDataForAtMostFourJobsAtATime) {
  std::promise<void> promise;
  const std::shared_future<void> released = promise.get_future().share();
  std::atomic<int> reading = 0;
  ClusterOptions options;
  options.name = "n0";
  options.prepare_job = [&reading, released](const auto& settings) {
    ++reading;
    released.wait();
    return prepare_counting_job(settings);
  };
  nodes_.push_back(ClusterNode::open(options).value());
  const std::string& node = nodes_[0]->address();
  const auto settings = counting_settings("peer", "asp", "1", "10", "0");
  for (wire::JobId job = 1; job <= 4; ++job) {
    EXPECT_FALSE(
        client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{job, settings, 1}, 50ms));
    EXPECT_TRUE(client_->ask_for<wire::Done>(node, wire::CloseJob{job}, 5s));
  }
  for (const wire::JobId job : {5U, 6U, 7U})
    EXPECT_FALSE(
        client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{job, settings, 1}, 50ms));
  EXPECT_TRUE(client_->ask_for<wire::Done>(node, wire::CloseJob{6}, 5s));
  EXPECT_EQ(reading, 4);
  promise.set_value();
  for (const wire::JobId job : {5U, 7U})
    EXPECT_TRUE(client_->ask_for<wire::JobPrepared>(node, wire::PrepareJob{job, settings, 1}, 10s));
  EXPECT_EQ(reading, 6) << "the sixth job was closed while it waited";
}

/// The test plays a node that repeats its request until it is answered.
TEST_F(Cluster, AnswersARepeatedRequestToPrepareAJobOnce) {
  std::promise<void> promise;
  add_waiting(promise.get_future().share());
  std::mutex mutex;
  std::vector<std::uint64_t> answered;
  const auto other =
      security::Endpoint::open({}, [&](const wire::FrameView& frame, const security::Sender&) {
        const auto message = wire::decode_control(frame);
        const auto* reply = message ? std::get_if<wire::Reply>(&message->body) : nullptr;
        const std::lock_guard lock{mutex};
        answered.push_back(reply == nullptr ? 0 : reply->number);
      });
  ASSERT_TRUE(other);
  const auto send = [&](std::uint64_t number, wire::RequestBody body) {
    (*other)->send(nodes_[0]->address(), wire::TrafficClass::control,
                   wire::encode(wire::ControlMessage{7, (*other)->address(),
                                                     wire::Request{number, std::move(body)}}));
  };
  const auto has_answered = [&](std::uint64_t number) {
    return wait_until([&] {
      const std::lock_guard lock{mutex};
      return std::ranges::count(answered, number) > 0;
    });
  };
  const auto settings = counting_settings("peer", "asp", "1", "10", "0");
  for (int i = 0; i < 3; ++i) send(1, wire::PrepareJob{7, settings, 1});
  send(2, wire::GetStatus{});
  EXPECT_TRUE(has_answered(2));
  promise.set_value();
  EXPECT_TRUE(has_answered(1));
  send(3, wire::GetStatus{});
  EXPECT_TRUE(has_answered(3));
  const std::lock_guard lock{mutex};
  EXPECT_EQ(answered, (std::vector<std::uint64_t>{2, 1, 3}));
}

TEST_F(Cluster, DropsAJobThatIsClosedWhileItIsPrepared) {
  std::promise<void> promise;
  add_waiting(promise.get_future().share());
  const std::string& node = nodes_[0]->address();
  const wire::SubmitJob job{job_, counting_settings("peer", "asp", "1", "10", "0")};
  EXPECT_FALSE(client_->ask_for<wire::JobStarted>(node, job, 200ms));
  EXPECT_TRUE(client_->ask_for<wire::Done>(node, wire::CloseJob{job_}, 5s));
  const auto outcome = client_->ask_for<wire::JobStarted>(node, job, 5s);
  promise.set_value();
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("was closed meanwhile"), std::string::npos)
      << outcome.error().message;
}

TEST_F(Cluster, RefusesMoreJobsThanAClientMayHave) {
  ClusterOptions options;
  options.name = "n0";
  options.prepare_job = prepare_counting_job;
  options.limits.jobs_per_client = 2;
  nodes_.push_back(ClusterNode::open(options).value());
  const auto settings = counting_settings("peer", "asp", "1", "10", "0");
  for (job_ = 1; job_ <= 2; ++job_) ASSERT_TRUE(submit(0, settings));
  const auto third = submit(0, settings);
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().message.find("holds 2 jobs of 127.0.0.1"), std::string::npos)
      << third.error().message;
  ASSERT_TRUE(client_->ask_for<wire::Done>(nodes_[0]->address(), wire::CloseJob{1}, 5s));
  EXPECT_TRUE(submit(0, settings)) << "a closed job does not count";
}

/// The threads that read data hang, as they do when a file system does not answer.
TEST_F(Cluster, EndsWhileItsReadersHang) {
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const auto released = std::make_shared<std::atomic<bool>>(false);
  const auto ended = std::make_shared<std::atomic<int>>(0);
  ClusterOptions options;
  options.name = "n0";
  options.prepare_job = [=](const auto&) -> Result<std::shared_ptr<const PreparedJob>> {
    ++*begun;
    released->wait(false);
    ++*ended;
    return Error{"too late"};
  };
  auto node = ClusterNode::open(options).value();
  const auto settings = counting_settings("peer", "asp", "1", "10", "0");
  for (wire::JobId job = 1; job <= 4; ++job)
    EXPECT_FALSE(client_->ask(node->address(), wire::PrepareJob{job, settings, 1}, 50ms));
  ASSERT_TRUE(wait_until([&] { return *begun == 4; }));
  const auto start = std::chrono::steady_clock::now();
  node->leave(30s);
  EXPECT_EQ(node->stop_readers(), 4U);
  node.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
  *released = true;
  released->notify_all();
  EXPECT_TRUE(wait_until([&] { return *ended == 4; })) << "readers outlive their node";
}

/// The data come from a pipe to which nobody writes.
TEST_F(Cluster, StopsReadingForAJobThatIsClosed) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(pipe[0]);
  std::atomic<bool> has_begun = false;
  std::promise<std::string> read_result;
  ClusterOptions options;
  options.name = "n0";
  options.prepare_job = [&](const auto&) -> Result<std::shared_ptr<const PreparedJob>> {
    ReadLimits limits = ReadScope::limits();
    EXPECT_TRUE(std::exchange(limits.refuses_pipes, false)) << "a node reads no pipes";
    const ReadScope scope{limits};
    has_begun = true;
    auto text = read_text(path, 1U << 20U);
    read_result.set_value(text ? "the read has succeeded" : text.error().message);
    return Error{"nothing"};
  };
  nodes_.push_back(ClusterNode::open(options).value());
  const std::string& node = nodes_[0]->address();
  EXPECT_FALSE(client_->ask(
      node, wire::PrepareJob{1, counting_settings("peer", "asp", "1", "9", "0"), 1}, 50ms));
  ASSERT_TRUE(wait_until([&] { return has_begun.load(); }));
  ASSERT_TRUE(client_->ask_for<wire::Done>(node, wire::CloseJob{1}, 5s));
  auto end = read_result.get_future();
  ASSERT_EQ(end.wait_for(5s), std::future_status::ready);
  EXPECT_EQ(end.get(), path + ": reading was cancelled");
  for (const int fd : pipe) ::close(fd);
}

TEST_F(Cluster, SendsJoiningNodesTheAgeOfAJob) {
  add(2);
  ASSERT_TRUE(submit(0, counting_settings("peer", "asp", "2", "100000", "5")));
  const auto age = [&](std::size_t node) -> std::uint64_t {
    const auto description =
        client_->ask_for<wire::JobDescription>(nodes_[node]->address(), wire::GetJob{job_}, 5s);
    return description ? description->age_ms : 0;
  };
  ASSERT_TRUE(wait_until([&] { return age(0) >= 1000; }));
  const std::size_t newcomer = add();
  ASSERT_TRUE(wait_until([&] { return age(newcomer) > 0; }));
  EXPECT_GE(age(newcomer), 1000U);
}

TEST(KeyedCluster, DropsMessagesOfNodesThatClientsSend) {
  const security::ClusterKey cluster = security::make_cluster_key();
  const wire::KeyPair handshake_keys = wire::make_key_pair();
  const auto secrets_of = [&](const std::string& name, security::Role role) {
    security::NodeSecrets secrets;
    secrets.cluster = cluster.public_key;
    secrets.handshake_keys = handshake_keys;
    secrets.keys = wire::make_key_pair();
    secrets.certificate = security::certificate_for(name, secrets.keys.public_key, cluster, role);
    return secrets;
  };
  const auto time = [] { return security::now; };
  ClusterOptions options;
  options.network = {.secrets = secrets_of("node", security::Role::node), .utc_now = time};
  std::atomic<int> preparations = 0;
  options.prepare_job = [&](const auto& settings) {
    ++preparations;
    return prepare_counting_job(settings);
  };
  auto node = ClusterNode::open(options).value();
  std::mutex mutex;
  std::vector<std::uint64_t> answered;
  const auto client = security::Endpoint::open(
      {.secrets = secrets_of("client", security::Role::client), .utc_now = time},
      [&](const wire::FrameView& frame, const security::Sender&) {
        const auto message = wire::decode_control(frame);
        const auto* reply = message ? std::get_if<wire::Reply>(&message->body) : nullptr;
        const std::lock_guard lock{mutex};
        answered.push_back(reply == nullptr ? 0 : reply->number);
      });
  ASSERT_TRUE(client);
  const auto send = [&](auto body) {
    (*client)->send(node->address(), wire::TrafficClass::control,
                    wire::encode(wire::ControlMessage{7, (*client)->address(), std::move(body)}));
  };
  const core::NodeRecord self{.id = 7, .address = (*client)->address(), .name = "client"};
  send(core::MembershipMessage{self, core::Gossip{}});
  send(wire::Request{1, wire::PrepareJob{42, {{"mode", "peer"}}}});
  send(wire::Request{2, wire::StartJob{42, nullptr}});
  send(wire::Reply{3, wire::Done{}});
  // A node handles the requests of one connection in order.
  send(wire::Request{4, wire::GetStatus{}});
  ASSERT_TRUE(wait_until([&] {
    const std::lock_guard lock{mutex};
    return std::ranges::count(answered, 4U) > 0;
  })) << "clients may ask for the status";
  EXPECT_TRUE(node->status().others.empty());
  node.reset();  // waits for the threads that prepare jobs
  const std::lock_guard lock{mutex};
  EXPECT_EQ(answered, std::vector<std::uint64_t>{4}) << "the other messages are dropped";
  EXPECT_EQ(preparations, 0);
}

/// The second node answers late, after the client has returned what the first one said.
TEST_F(Cluster, AnswersAClientAlsoWhileAnotherNodeIsSilent) {
  add(1);
  std::mutex mutex;
  std::set<std::uint64_t> numbers;
  std::string client_address;
  const auto silent =
      security::Endpoint::open({}, [&](const wire::FrameView& frame, const security::Sender&) {
        const auto message = wire::decode_control(frame);
        const auto* request = message ? std::get_if<wire::Request>(&message->body) : nullptr;
        if (request == nullptr || !std::holds_alternative<wire::GetStatus>(request->body)) return;
        const std::lock_guard lock{mutex};
        numbers.insert(request->number);
        client_address = message->address;
      });
  ASSERT_TRUE(silent);
  const std::vector<std::string> both{nodes_[0]->address(), (*silent)->address()};
  const auto asked_at = std::chrono::steady_clock::now();
  const auto first = client_->poll_all(both, wire::GetStatus{}, 60s, 50ms);
  EXPECT_LT(std::chrono::steady_clock::now() - asked_at, 30s);
  EXPECT_TRUE(first[0]);
  EXPECT_FALSE(first[1]);
  ASSERT_TRUE(wait_until([&] {
    const std::lock_guard lock{mutex};
    return !numbers.empty();
  }));
  {
    const std::lock_guard lock{mutex};
    (*silent)->send(client_address, wire::TrafficClass::control,
                    wire::encode(wire::ControlMessage{
                        9, (*silent)->address(), wire::Reply{*numbers.begin(), wire::Done{}}}));
  }
  ASSERT_TRUE(wait_until([&] {
    const auto later = client_->poll_all(both, wire::GetStatus{}, 60s, 50ms);
    EXPECT_TRUE(later[0]);
    return later[1].has_value() && std::holds_alternative<wire::Done>(*later[1]);
  }));
  const std::lock_guard lock{mutex};
  EXPECT_EQ(numbers.size(), 1U) << "a request that is open is sent again with its number";
}

/// The reply is large and takes time to arrive, so the client must not ask for it again meanwhile.
TEST_F(Cluster, AsksOnceWithinASecondForTheResultOfAFlow) {
  std::atomic<int> requests = 0;
  const auto silent =
      security::Endpoint::open({}, [&](const wire::FrameView& frame, const security::Sender&) {
        const auto message = wire::decode_control(frame);
        if (message && std::holds_alternative<wire::Request>(message->body)) ++requests;
      });
  ASSERT_TRUE(silent);
  EXPECT_FALSE(client_->ask((*silent)->address(), wire::GetResult{job_}, 1200ms));
  EXPECT_EQ(requests, 1);
}

TEST_F(Cluster, RefusesAJobThatANodeCannotPrepare) {
  add(2);
  const auto started = submit(0, {});
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("there is nothing to count"), std::string::npos);
}

/// A node that does not receive the CloseJob of a client learns from another node that the job is
/// closed.
TEST_F(Cluster, ForgetsAJobThatIsClosedElsewhere) {
  add(2);
  const auto threads = [] {
    return std::ranges::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                                 std::filesystem::directory_iterator{});
  };
  const auto idle = threads();
  ASSERT_TRUE(submit(0, counting_settings("peer", "asp", "2", "100000", "4")));
  ASSERT_TRUE(wait_until([&] { return lowest_step() >= 10; }));
  ASSERT_TRUE(client_->ask(nodes_[0]->address(), wire::CloseJob{job_}, 10s));
  EXPECT_TRUE(wait_until([&] { return members().empty(); }));
  // Each node may keep two more threads, such as one that reads data.
  EXPECT_TRUE(wait_until([&] { return threads() <= idle + 4; })) << threads() - idle;
  const auto again =
      client_->ask(nodes_[0]->address(),
                   wire::PrepareJob{job_, counting_settings("peer", "bsp", "2", "9", "0"), 2}, 10s);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "the job is closed");
}

TEST_F(Cluster, ClosesConnectionsToClientsThatHaveEnded) {
  const auto descriptors = [] {
    return std::ranges::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                                 std::filesystem::directory_iterator{});
  };
  add();
  const auto ask = [&] {
    const auto client = ClusterClient::open({}).value();
    EXPECT_TRUE(client->ask(nodes_[0]->address(), wire::GetStatus{}, 10s));
  };
  ask();
  const auto before = descriptors();
  for (int i = 0; i < 40; ++i) ask();
  EXPECT_TRUE(wait_until([&] { return descriptors() <= before + 10; }));
}

}  // namespace
}  // namespace starling::actor
