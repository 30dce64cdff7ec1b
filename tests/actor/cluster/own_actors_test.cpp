/// Tests that the function that spawns a user's own actors (JobOptions::on_start) does not stop its
/// node, however long it takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/interfaces.hpp"
#include "tests/actor/cluster/cluster.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

/// An on_start whose first call waits for release().
class Gate {
 public:
  [[nodiscard]] OnStart on_start() {
    return [this, released = release_.get_future().share()](const auto&, auto&) {
      if (!is_first_.exchange(false)) return;
      reached_.set_value();
      released.wait();
    };
  }
  void wait_until_reached() { reached_.get_future().wait(); }
  void release() { release_.set_value(); }

 private:
  std::atomic<bool> is_first_ = true;
  std::promise<void> reached_;
  std::promise<void> release_;
};

/// A cluster of nodes whose jobs call `on_start`.
class OwnActors : public Cluster {
 protected:
  void add_node(OnStart on_start, std::chrono::milliseconds on_start_max = 20s) {
    ClusterOptions options;
    if (!nodes_.empty()) options.seeds.push_back(nodes_[0]->address());
    options.name = "n" + std::to_string(nodes_.size());
    options.on_start_max = on_start_max;
    options.prepare_job = [on_start = std::move(on_start)](
                              const auto& settings) -> Result<std::shared_ptr<const PreparedJob>> {
      return std::shared_ptr<const PreparedJob>{std::make_shared<CountingJob>(settings, on_start)};
    };
    nodes_.push_back(ClusterNode::open(options).value());
  }
  /// Submits a job on a thread of its own.
  std::future<Result<wire::JobStarted>> submit_later() {
    return std::async(std::launch::async, [this] {
      return client_->ask_for<wire::JobStarted>(
          nodes_[0]->address(),
          wire::SubmitJob{job_, counting_settings("peer", "asp", "2", "100", "0")}, 40s);
    });
  }
};

TEST_F(OwnActors, BlockOnlyTheirJobWhileTheyAreSpawned) {
  Gate gate;
  add_node(gate.on_start());
  auto started = submit_later();
  gate.wait_until_reached();
  const auto client = ClusterClient::open({}).value();
  const auto status = client->ask_for<wire::NodeStatus>(
      nodes_[0]->address(), wire::GetStatus{.job = job_, .with_nodes = false}, 10s);
  ASSERT_TRUE(status);
  ASSERT_EQ(status->jobs.size(), 1U);
  EXPECT_EQ(status->jobs[0].local_members.size(), 2U);
  for (const auto& member : status->jobs[0].local_members) EXPECT_EQ(member.updates, 0U);
  EXPECT_EQ(started.wait_for(0s), std::future_status::timeout);
  gate.release();
  ASSERT_TRUE(started.get());
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  expect_exact_counts(model());
}

TEST_F(OwnActors, FailToStartTheJobIfTheirFunctionThrows) {
  add_node([](const auto&, auto&) { throw std::runtime_error{"no actors today"}; });
  const auto started = submit_later().get();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("on_start: no actors today"), std::string::npos)
      << started.error().message;
  EXPECT_TRUE(wait_until([&] { return nodes_[0]->status().jobs.empty(); }));
}

TEST_F(OwnActors, FailToStartTheJobIfTheirFunctionDoesNotReturn) {
  Gate gate;
  add_node(gate.on_start(), 300ms);
  const auto started = submit_later().get();
  const std::string why = started ? "" : started.error().message;
  EXPECT_NE(why.find("on_start has not returned within 300ms"), std::string::npos) << why;
  EXPECT_TRUE(wait_until([&] { return nodes_[0]->status().jobs.empty(); }));
  gate.release();
}

/// Another job runs meanwhile, and is not in the answer about the first one.
TEST_F(OwnActors, LeaveOtherJobsAlone) {
  Gate gate;
  add_node(gate.on_start());
  auto started = submit_later();
  gate.wait_until_reached();
  const auto client = ClusterClient::open({}).value();
  const wire::JobId other = 43;
  ASSERT_TRUE(client->ask_for<wire::JobStarted>(
      nodes_[0]->address(),
      wire::SubmitJob{other, counting_settings("peer", "asp", "2", "100", "0")}, 10s));
  const auto done = [&] {
    const auto status = client->ask_for<wire::NodeStatus>(
        nodes_[0]->address(), wire::GetStatus{.job = other, .with_nodes = false}, 10s);
    return status && status->jobs.size() == 1 && status->jobs[0].job == other &&
           std::ranges::all_of(status->jobs[0].local_members, [](const auto& member) {
             return member.state == static_cast<std::uint8_t>(State::done);
           });
  };
  EXPECT_TRUE(wait_until(done));
  gate.release();
  EXPECT_TRUE(started.get());
}

/// The job begins without the node that leaves while its own actors are being spawned.
TEST_F(OwnActors, DoNotKeepANodeThatLeaves) {
  Gate gate;
  add_node([](const auto&, auto&) {});
  add_node(gate.on_start());
  for (const auto& node : nodes_) ASSERT_TRUE(wait_until([&] { return live_others(*node) == 1; }));
  auto started = submit_later();
  gate.wait_until_reached();
  const auto began_at = std::chrono::steady_clock::now();
  nodes_[1]->leave(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - began_at, 10s) << "it waits for no member";
  const auto reply = started.get();
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->lost, std::vector<std::string>{"n1"});
  job_ = reply->job;
  gate.release();
  nodes_.pop_back();
  ASSERT_TRUE(wait_until([&] { return all_done(); }));
  expect_exact_counts(model());
}

/// The job is closed while its own actors are being spawned.
TEST_F(OwnActors, DoNotKeepAJobThatIsClosed) {
  Gate gate;
  add_node(gate.on_start());
  auto started = submit_later();
  gate.wait_until_reached();
  const auto client = ClusterClient::open({}).value();
  EXPECT_TRUE(client->ask_for<wire::Done>(nodes_[0]->address(), wire::CloseJob{job_}, 10s));
  EXPECT_FALSE(started.get());
  EXPECT_TRUE(nodes_[0]->status().jobs.empty());
  gate.release();
}

}  // namespace
}  // namespace starling::actor
