#include "starling/engine/flow/plan/scheduler.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "starling/engine/flow/plan/task.hpp"

namespace starling::flow {
namespace {

StagePtr stage(std::string name, Part parts, std::vector<StagePtr> inputs = {}) {
  auto made = std::make_shared<Stage>();
  made->description = {std::move(name), parts};
  made->inputs = std::move(inputs);
  return made;
}

TEST(Plan, ListsEachStageOnceAndAfterItsInputs) {
  const auto source = stage("source", 2);
  const auto left = stage("left", 3, {source});
  const auto right = stage("right", 1, {source});
  EXPECT_EQ(print(make_plan(stage("join", 3, {left, right}))),
            "stage 0: source, 2 parts\n"
            "stage 1: left, 3 parts, reads 0\n"
            "stage 2: right, 1 part, reads 0\n"
            "stage 3: join, 3 parts, reads 1 2\n");
}

TEST(Plan, LeavesOutStagesThatOnlyACompleteCacheReads) {
  const auto source = stage("source", 1);
  auto cached = std::make_shared<Stage>(*stage("cache", 1, {source}));
  cached->kept = std::make_shared<KeptOutputs>();
  const auto last = stage("last", 1, {cached});
  EXPECT_EQ(make_plan(last).stages.size(), 3U);
  cached->kept->set(std::make_shared<const KeptOutputs::Parts>(1));
  const Plan plan = make_plan(last);
  ASSERT_EQ(plan.stages.size(), 2U);
  Scheduler scheduler{plan, 1};
  EXPECT_EQ(scheduler.next(), (TaskId{.stage = 1, .part = 0}));
}

TEST(Plan, HoldsAHundredThousandStagesInARow) {
  StagePtr last = stage("0", 1);
  for (int i = 1; i < 100'000; ++i) last = stage("", 1, {last});
  EXPECT_EQ(make_plan(last).stages.size(), 100'000U);
}

TEST(Scheduler, RunsAStageOnceAllPartsOfItsInputsAreDone) {
  const Plan plan = make_plan(stage("second", 1, {stage("first", 2)}));
  Scheduler scheduler{plan, 1};
  const auto a = scheduler.next();
  const auto b = scheduler.next();
  EXPECT_EQ(a, (TaskId{.stage = 0, .part = 0}));
  EXPECT_EQ(b, (TaskId{.stage = 0, .part = 1}));
  EXPECT_EQ(scheduler.next(), std::nullopt);
  EXPECT_TRUE(scheduler.on_done(*b).empty());
  EXPECT_EQ(scheduler.next(), std::nullopt);
  EXPECT_TRUE(scheduler.on_done(*a).empty());
  const auto c = scheduler.next();
  EXPECT_EQ(c, (TaskId{.stage = 1, .part = 0}));
  EXPECT_FALSE(scheduler.has_ended());
  EXPECT_EQ(scheduler.on_done(*c), std::vector<StageId>{0});
  EXPECT_TRUE(scheduler.has_ended());
  EXPECT_EQ(scheduler.error(), nullptr);
}

TEST(Scheduler, TriesAFailedPartAgainAndThenEndsTheJob) {
  const Plan plan = make_plan(stage("only", 2));
  Scheduler scheduler{plan, 2};
  scheduler.on_failed(*scheduler.next(), Error{"once"});
  const auto again = scheduler.next();
  EXPECT_EQ(again, (TaskId{.stage = 0, .part = 0, .attempt = 1}));
  const auto other = scheduler.next();
  scheduler.on_failed(*again, Error{"twice"});
  EXPECT_TRUE(scheduler.has_ended());
  EXPECT_EQ(scheduler.error()->message, "twice");
  EXPECT_EQ(scheduler.running(), 1U);
  scheduler.on_failed(*other, Error{"late"});
  EXPECT_EQ(scheduler.next(), std::nullopt);
  EXPECT_EQ(scheduler.error()->message, "twice");
}

TEST(Scheduler, EndsStagesWithoutParts) {
  const auto empty = stage("empty", 0);
  const Plan plan = make_plan(stage("third", 0, {stage("second", 0, {empty}), empty}));
  Scheduler scheduler{plan, 1};
  EXPECT_TRUE(scheduler.has_ended());
  EXPECT_EQ(scheduler.next(), std::nullopt);
}

}  // namespace
}  // namespace starling::flow
