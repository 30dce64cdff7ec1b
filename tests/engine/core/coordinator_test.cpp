#include "starling/engine/core/worker/coordinator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/engine/core/initial_workers.hpp"

namespace starling::core {
namespace {

using namespace std::chrono_literals;

class SampledCoordinator : public testing::Test {
 protected:
  Coordinator& make(barrier::Recheck recheck, std::size_t workers, std::size_t beta) {
    core_.emplace(
        CoordinatorOptions{.barrier = barrier::sampled(barrier::Bsp{}, beta), .recheck = recheck});
    add_initial_workers(*core_, std::vector<Step>(workers));
    return *core_;
  }
  void arrive(MemberId worker, Step step) {
    core_->on({1ms, random_, effects_}, Arrived{worker, step});
  }

  std::optional<Coordinator> core_;
  Random random_{1};
  Effects effects_;
};

TEST_F(SampledCoordinator, DrawsForEveryWaiterAtEachArrival) {
  auto& core = make({.arrival = true}, 4, 3);
  arrive(0, 1);
  EXPECT_EQ(core.draws(), 1U);
  arrive(1, 1);
  EXPECT_EQ(core.draws(), 3U);
  arrive(2, 1);
  EXPECT_EQ(core.draws(), 6U);
  EXPECT_EQ(core.passes(), 0U);
  arrive(3, 1);
  EXPECT_EQ(core.draws(), 10U);
  EXPECT_EQ(core.passes(), 4U);
}

/// With `notify`, a coordinator draws again for a waiter only when the first laggard of its draw
/// has arrived. The test lets worker 1 and worker 2 arrive, each in a copy of the coordinator:
/// exactly one of them is the laggard.
TEST_F(SampledCoordinator, DrawsAgainOnlyWhenTheLaggardHasCaughtUp) {
  auto& core = make({.notify = true}, 3, 1);
  arrive(0, 1);
  ASSERT_EQ(core.draws(), 1U);
  ASSERT_EQ(core.passes(), 0U);
  std::vector<std::uint64_t> draws;
  for (const MemberId other : {1U, 2U}) {
    Coordinator copy = core;
    Random random{7};
    copy.on({1ms, random, effects_}, Arrived{other, 1});
    draws.push_back(copy.draws());
  }
  std::ranges::sort(draws);
  EXPECT_EQ(draws, (std::vector<std::uint64_t>{2, 3}));
}

/// Neither a long interval nor a rule without a laggard makes a worker wait for one that is gone.
TEST_F(SampledCoordinator, LetsNoWorkerWaitForOneThatIsGone) {
  for (const barrier::AnyRule& rule :
       {barrier::AnyRule{barrier::Bsp{}}, barrier::AnyRule{barrier::Quorum{1}},
        barrier::AnyRule{barrier::Quorum{0.9}}}) {
    core_.emplace(
        CoordinatorOptions{.barrier = barrier::sampled(rule, 1), .recheck = {.interval = 1h}});
    add_initial_workers(*core_, {0, 0});
    arrive(0, 1);
    ASSERT_EQ(core_->passes(), 0U);
    effects_.clear();
    core_->on_members({2ms, random_, effects_}, {1}, {});
    ASSERT_EQ(effects_.size(), 1U) << barrier::print({rule});
    EXPECT_TRUE(std::holds_alternative<Proceed>(std::get<Send>(effects_[0]).message));
  }
}

TEST_F(SampledCoordinator, DrawsAgainIfTheLaggardHasJoinedAgain) {
  auto& core = make({.notify = true}, 3, 1);
  arrive(0, 1);
  ASSERT_EQ(core.draws(), 1U);
  const MemberId laggard = core.drawn(0).front();
  core.on_members({2ms, random_, effects_}, {laggard}, {laggard});
  EXPECT_EQ(core.draws(), 2U);
}

TEST_F(SampledCoordinator, CountsNoDrawIfTheSampleIsEmpty) {
  auto& core = make({.arrival = true}, 3, 0);
  arrive(0, 1);
  EXPECT_EQ(core.draws(), 0U);
  EXPECT_EQ(effects_.size(), 1U);
}

TEST(Coordinator, KnowsTheSpreadOfRunningWorkers) {
  Coordinator core{{.barrier = {barrier::Asp{}}, .recheck = {}}};
  add_initial_workers(core, {0, 0, 0});
  Random random{1};
  Effects effects;
  const Context context{1ms, random, effects};
  core.on(context, Arrived{0, 5});
  core.on(context, Arrived{1, 2});
  EXPECT_EQ(core.spread().min, 0U);
  EXPECT_EQ(core.spread().max, 5U);
  core.on_members(context, {2}, {});
  EXPECT_EQ(core.spread().min, 2U);
  core.on(context, Ended{0, 6});
  EXPECT_EQ(core.spread().max, 2U);
  EXPECT_EQ(core.max_lag(), 5U) << "before worker 2 left";
  core.on(context, Ended{1, 2});
  EXPECT_EQ(core.spread().max, 0U);
}

TEST(Coordinator, LetsAWorkerThatJoinsAfterTheLastOneDiedBeginAtItsStep) {
  for (const barrier::Barrier& barrier :
       {barrier::Barrier{barrier::Ssp{2}}, barrier::Barrier{barrier::Ebsp{}}}) {
    Coordinator core{{.barrier = barrier, .recheck = {}}};
    add_initial_workers(core, {3, 3});
    Random random{1};
    Effects effects;
    const Context context{1ms, random, effects};
    core.on(context, Arrived{0, 4});
    core.on(context, Arrived{1, 4});
    core.on(context, Arrived{1, 5});
    core.on_members(context, {0}, {});
    core.on_members(context, {1}, {});
    core.on_members(context, {}, {2});
    effects.clear();
    core.on(context, WorkerStatus{.member = 2, .phase = WorkerStatus::Phase::entering});
    ASSERT_EQ(effects.size(), 1U);
    const Send& send = std::get<Send>(effects.front());
    ASSERT_TRUE(std::holds_alternative<Proceed>(send.message));
    EXPECT_EQ(std::get<Proceed>(send.message).step, 5U) << print(barrier);
  }
}

/// A predicate may refuse whoever sees no other worker.
TEST(Coordinator, LetsALoneWorkerPassWhateverItsRuleSays) {
  const auto needs_another =
      barrier::Predicate::make("another", [](Step own, std::span<const Step> seen) {
        return std::ranges::any_of(seen, [=](Step step) { return step >= own; });
      });
  Coordinator core{{.barrier = {needs_another}, .recheck = {}}};
  add_initial_workers(core, {3, 3});
  Random random{1};
  Effects effects;
  const Context context{1ms, random, effects};
  core.on(context, Arrived{0, 4});
  EXPECT_TRUE(effects.empty()) << "worker 1 is behind";
  core.on_members(context, {1}, {});
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_EQ(std::get<Proceed>(std::get<Send>(effects.front()).message).step, 4U);
  effects.clear();
  core.on(context, Arrived{0, 5});
  EXPECT_EQ(effects.size(), 1U);
}

/// A worker ends when its node leaves, too: the job goes on with those that join later.
TEST(Coordinator, LetsAWorkerThatJoinsAfterTheLastOneLeftBeginAtItsStep) {
  enum class Fate { has_ended, leaves, has_left };
  for (const Fate fate : {Fate::has_ended, Fate::leaves, Fate::has_left}) {
    Coordinator core{{.barrier = {barrier::Ssp{2}}, .recheck = {}}};
    add_initial_workers(core, {3});
    Random random{1};
    Effects effects;
    const Context context{1ms, random, effects};
    core.on(context, Arrived{0, 4});
    core.on(context, Ended{0, 4, fate == Fate::leaves});
    if (fate == Fate::has_left) core.on_members(context, {0}, {});
    core.on_members(context, {}, {1});
    effects.clear();
    core.on(context, WorkerStatus{.member = 1, .phase = WorkerStatus::Phase::entering});
    ASSERT_EQ(effects.size(), 1U);
    const Message& message = std::get<Send>(effects.front()).message;
    ASSERT_TRUE(std::holds_alternative<Proceed>(message));
    EXPECT_EQ(std::get<Proceed>(message).step,
              fate == Fate::has_ended ? barrier::finished : Step{4});
  }
}

TEST(Coordinator, KnowsAfterATakeoverThatAWorkerEndsBecauseItLeaves) {
  for (const bool leaves : {false, true}) {
    Coordinator core{{.barrier = {barrier::Ssp{2}}, .recheck = {}}};
    core.take_over({0}, {2});
    Random random{1};
    Effects effects;
    const Context context{1ms, random, effects};
    using enum WorkerStatus::Phase;
    core.on(context, WorkerStatus{.member = 0, .phase = ended, .step = 4, .leaves = leaves});
    core.on(context, WorkerStatus{.member = 2, .held = 4});
    core.on_members(context, {}, {1});
    core.on(context, WorkerStatus{.member = 1, .phase = entering});
    ASSERT_EQ(effects.size(), 1U);
    const Message& message = std::get<Send>(effects.front()).message;
    EXPECT_EQ(std::get<Proceed>(message).step, leaves ? Step{4} : barrier::finished);
  }
}

TEST(CoordinatorDeathTest, EndsTheProgramIfItsBarrierIsViolated) {
  Coordinator core{{.barrier = {barrier::Ssp{2}}, .recheck = {}}};
  add_initial_workers(core, {0, 0});
  Random random{1};
  Effects effects;
  core.on({1ms, random, effects}, Arrived{0, 3});
  EXPECT_DEATH(core.on({1ms, random, effects}, Arrived{0, 4}), "broken invariant");
}

}  // namespace
}  // namespace starling::core
