/// Tests jobs on several nodes in this process, each with its own transport, over sockets on the
/// loopback interface.
#include "starling/actor/cluster/local_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/actor/thread_priority.hpp"
#include "starling/models/tabular/linear_models.hpp"
#include "tests/actor/cluster/local_jobs.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;
using State = actor::MemberReport::State;

TEST(LocalJob, ThreeNodesMakeEachUpdateOnce) {
  Nodes nodes{make_counting_job(options_of(3, 200, sampled_barrier, core::Mode::peer, 0ns))};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(nodes.model().at(0).value.as<float>().back(), 600 * full_batch);
  nodes.expect_exact();
}

/// Counters that count their gradients on threads that receive messages.
struct ThreadWatchers : Counters {
  double gradient(std::span<const float> w, const models::Table& data, models::Batch batch,
                  std::span<float> g, models::ComputeContext& context) const {
    ++(is_network_thread() ? on_network_threads : on_others);
    return Counters::gradient(w, data, batch, g, context);
  }
  static inline std::atomic<std::uint64_t> on_network_threads = 0;
  static inline std::atomic<std::uint64_t> on_others = 0;
};

/// The gradients are brief, so other threads of the members run them without waking another one.
TEST(LocalJob, RunsNoGradientOnAThreadThatReceives) {
  const TrainOptions options = options_of(3, 500, sampled_barrier, core::Mode::peer, 0ns);
  Nodes nodes{[options, data = std::make_shared<models::Table>(load("linear:d=2,n=1200"))] {
    return counting_assignment<ThreadWatchers>(*data, options);
  }};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  EXPECT_EQ(ThreadWatchers::on_network_threads, 0U);
  EXPECT_GE(ThreadWatchers::on_others, 1500U);
}

/// Returns why a member on one of the first `count` nodes has failed, or "" if no member has.
std::string failure_of_any(Nodes& nodes, std::size_t count) {
  for (std::size_t node = 0; node < count; ++node)
    for (const auto& report : nodes.local(node).reports())
      if (report.state == State::failed) return report.why;
  return {};
}

/// A member that has failed answers no message, so its LocalJob reports the failure.
TEST(LocalJob, ReportsTheFailureOfAMember) {
  Nodes nodes{
      [make = make_counting_job(options_of(3, 200, sampled_barrier, core::Mode::peer, 0ns))] {
        auto job = make();
        job.applier = core::merge_applier<float>(
            [](const auto&, auto, auto) { throw std::runtime_error{"no merge"}; });
        return job;
      }};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return !failure_of_any(nodes, 3).empty(); }));
  EXPECT_EQ(failure_of_any(nodes, 3).substr(0, 7), "worker ");
  EXPECT_NE(failure_of_any(nodes, 3).find("no merge"), std::string::npos)
      << failure_of_any(nodes, 3);
}

/// The members hang while they merge the first updates. A node that waited for each of them would
/// need half a minute for so many reports.
TEST(LocalJob, ReportsWithoutWaitingForMembersThatHang) {
  std::promise<void> release;
  const auto released = std::make_shared<std::shared_future<void>>(release.get_future().share());
  Nodes nodes{[make = make_counting_job(options_of(3, 20, sampled_barrier, core::Mode::peer, 0ns)),
               released] {
    auto job = make();
    job.applier =
        core::merge_applier<float>([released](const auto&, auto, auto) { released->wait(); });
    return job;
  }};
  add_peers(nodes, 3);
  nodes.start();
  const auto started_at = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i)
    for (std::size_t node = 0; node < 3; ++node) {
      EXPECT_EQ(nodes.local(node).reports().size(), 1U);
      (void)nodes.local(node).configuration();
      nodes.local(node).pause(1ms);
    }
  EXPECT_LT(std::chrono::steady_clock::now() - started_at, 15s);
  release.set_value();
  EXPECT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
}

/// A pause that the member has not handled yet does not count, even if it was waiting before.
TEST(LocalJob, IsPausedOnceItsMembersHaveHandledThePause) {
  Nodes nodes{make_counting_job(options_of(3, 100'000, sampled_barrier))};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) >= 10; }));
  const auto is_paused = [&](std::size_t node) {
    return nodes.local(node).reports().at(0).is_paused;
  };
  for (std::size_t node = 0; node < 3; ++node) nodes.local(node).pause(1min);
  ASSERT_TRUE(wait_until([&] { return is_paused(0) && is_paused(1) && is_paused(2); }));
  const auto model = nodes.model();
  const auto later = nodes.model();
  for (std::size_t range = 0; range < model.size(); ++range)
    EXPECT_EQ(model[range].updates, later[range].updates);
  for (std::size_t node = 0; node < 3; ++node) {
    nodes.local(node).pause(0ns);
    nodes.local(node).stop();
  }
  EXPECT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  nodes.expect_exact();
}

/// A forged configuration makes a member the only owner of a range that it never had.
TEST(LocalJob, SurvivesAMemberThatGetsAFalseConfiguration) {
  Nodes nodes{make_counting_job(options_of(3, 100'000, sampled_barrier, core::Mode::peer, 1ms))};
  add_peers(nodes, 3);
  nodes.start();
  ASSERT_TRUE(wait_until([&] { return nodes.step(0) > 3; }));
  auto next = std::make_shared<core::Configuration>(*nodes.local(0).configuration());
  next->epoch = 2;
  core::MemberId other = 0;
  while (next->ranges[0].find(other) != nullptr) ++other;
  next->ranges[0] = {2, {{other, 2}}};
  core::Envelope forged;
  forged.from = (other + 1) % 3;
  forged.to = other;
  forged.epoch = 2;
  forged.packet.from = 1;
  forged.packet.payload = core::make_peer_message(core::ConfigurationPtr{std::move(next)});
  nodes.local(other).deliver(std::move(forged), false);
  ASSERT_TRUE(wait_until([&] { return !failure_of_any(nodes, 3).empty(); }));
  EXPECT_NE(failure_of_any(nodes, 3).find("broken invariant: owned.full"), std::string::npos)
      << failure_of_any(nodes, 3);
}

/// Records on which thread each step ran. From step `first_long_step` on, steps take 1 ms.
class ThreadRecordingTask final : public Task {
 public:
  static constexpr core::Step first_long_step = 1000;
  static constexpr core::Step steps = first_long_step + 20;

  ThreadRecordingTask() {
    layout_.parameters.push_back({.name = "w", .shape = {4}});
    layout_.offsets = {0};
    layout_.ranges.push_back({0, 4, 0, {{0, 0, 0, 4}}});
    layout_.size = 4;
  }
  [[nodiscard]] const core::Layout& layout() const override { return layout_; }
  StepResult compute(const StepInput& input, core::Scratch&) override {
    if (input.step >= first_long_step) std::this_thread::sleep_for(1ms);
    threads.push_back(std::this_thread::get_id());
    StepResult result;
    result.update.samples = 1;
    result.update.parts.push_back({0, {core::Buffer::make<float>(4), 0, 4, nullptr}});
    return result;
  }

  std::vector<std::thread::id> threads;

 private:
  core::Layout layout_;
};

TEST(LocalJob, RunsBriefCodeOnTheActorsThreadUntilItTakesLong) {
#ifdef STARLING_SANITIZED
  GTEST_SKIP() << "code is never brief under a sanitizer on a busy machine";
#endif
  const auto task = std::make_shared<ThreadRecordingTask>();
  {
    Nodes nodes{[&] {
      Assignment job;
      job.job = options_of(1, ThreadRecordingTask::steps, "asp").job;
      job.job.delay = {};
      job.task = task;
      job.applier = core::merge_applier<float>([](const auto&, auto, auto) {});
      job.initial_states = core::to_ranges<float>(task->layout(), std::vector<float>(4));
      return job;
    }};
    add_peers(nodes, 1);
    nodes.start();
    ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  }
  ASSERT_EQ(task->threads.size(), ThreadRecordingTask::steps);
  const std::thread::id pool = task->threads.front();
  const auto first_long = task->threads.begin() + ThreadRecordingTask::first_long_step;
  EXPECT_LT(std::count(task->threads.begin(), first_long, pool),
            ThreadRecordingTask::first_long_step);
  // Four long steps raise the mean above the limit.
  EXPECT_EQ(std::count(first_long + 4, task->threads.end(), pool),
            task->threads.end() - first_long - 4);
}

/// A job on three nodes gives the same model as a job in one process.
TEST(LocalJob, UnderBspEqualsTheJobInOneProcess) {
  auto options = options_of(6, 60, "bsp", core::Mode::central, 0ns);
  options.job.shards = 3;
  options.batch = 8;
  options.optimizer = models::Sgd{.lr = 0.05F, .momentum = 0.9F};
  const auto data = load("linear:d=300,n=1500,noise=0.1");
  const auto model = models::Linear<float>::parse(Spec::parse("linear").value(), data).value();
  Nodes nodes{[&] { return assign_training(model, data, nullptr, options).value(); }};
  add_servers(nodes);
  nodes.start();
  const auto outcome = train(model, data, nullptr, options).value();
  ASSERT_TRUE(wait_until([&] { return nodes.all_are(State::done); }));
  const auto model_on_nodes = nodes.model();
  ASSERT_EQ(model_on_nodes.size(), outcome.model.size());
  for (std::size_t range = 0; range < model_on_nodes.size(); ++range) {
    const auto expected = outcome.model[range].value.as<float>();
    const auto actual = model_on_nodes[range].value.as<float>();
    ASSERT_EQ(expected.size(), actual.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], actual[i], 1e-5);
  }
}

}  // namespace
}  // namespace starling::actor
