/// Tests how a node counts the work of a flow.
#include "starling/actor/flow_job/flow_counter.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "starling/engine/core/flow/action_builder.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<flow::Stage> stage(const std::string& operations, flow::Part parts,
                                   std::vector<flow::StagePtr> inputs = {}) {
  auto made = std::make_shared<flow::Stage>();
  made->description = {operations, parts, inputs.empty() ? "hash(2)" : ""};
  made->inputs = std::move(inputs);
  made->reads = [](flow::Part) { return std::vector<flow::StageRead>{}; };
  made->form.read = [](flow::Output, flow::Part) { return std::unique_ptr<flow::PieceReader>{}; };
  return made;
}

/// An action that caches: 3 parts of `text`, and 2 of `cache`. Then one that reads the cache.
class CountsOfANode : public testing::Test {
 protected:
  CountsOfANode() {
    cached_->kept = std::make_shared<flow::KeptOutputs>();
    begin(cached_, false);
  }
  void begin(const flow::StagePtr& last, bool gathers) {
    const auto built = builder_.build(last, gathers);
    ASSERT_TRUE(built) << built.error().message;
    counter_.begin(*built->action, built->plan);
    counter_.begin(*built->action, built->plan);  // another member begins it
  }
  void compute(const core::PartName& task, core::Time from, core::Time to) {
    counter_.begin_task(task, from);
    counter_.end_task(task, {10, 5, 80, 0}, to);
  }

  std::shared_ptr<flow::Stage> cached_ = stage("cache", 2, {stage("text", 3)});
  core::ActionBuilder builder_;
  FlowCounter counter_;
};

TEST_F(CountsOfANode, CountsTheStagesOfAnAction) {
  EXPECT_EQ(counter_.report().actions, 1U);
  EXPECT_EQ(counter_.report().stages, 2U);
  EXPECT_TRUE(counter_.report().current.empty());
  compute({{0, 0}, 0}, 1s, 2s);
  compute({{0, 0}, 2}, 2s, 4s);
  counter_.begin_task({{0, 0}, 1}, 4s);
  const core::FlowReport report = counter_.report();
  ASSERT_EQ(report.current.size(), 1U);
  EXPECT_EQ(report.current[0].number, 1U);
  EXPECT_EQ(report.current[0].parts_done, std::vector<std::uint64_t>{0b101});
  EXPECT_EQ(report.current[0].counts.records_read, 20U);
  EXPECT_EQ(report.current[0].seconds, 3);
  ASSERT_EQ(report.totals.size(), 2U);
  EXPECT_EQ(report.totals[0].description.operations, "text");
  EXPECT_EQ(report.totals[0].runs, 1U);
  EXPECT_EQ(report.totals[0].counts.bytes_written, 160U);
  EXPECT_EQ(report.totals[0].seconds, 3);
  counter_.on_outputs_lost();
  EXPECT_EQ(counter_.report().current[0].parts_done, std::vector<std::uint64_t>{0});
  EXPECT_EQ(counter_.report().totals[0].counts.records_read, 20U) << "it was work";
}

TEST_F(CountsOfANode, AddsUpActions) {
  compute({{0, 0}, 0}, 1s, 2s);
  compute({{0, 1}, 0}, 2s, 3s);
  const auto counted = stage("count", 2, {cached_});
  begin(counted, true);
  EXPECT_EQ(counter_.report().actions, 2U);
  EXPECT_EQ(counter_.report().stages, 1U) << "the cache is there";
  compute({{0, 1}, 1}, 4s, 5s);  // it was late
  compute({{1, 2}, 0}, 5s, 7s);
  const auto totals = counter_.report().totals;
  ASSERT_EQ(totals.size(), 3U);
  EXPECT_EQ(totals[0].runs, 1U);
  EXPECT_EQ(totals[1].runs, 1U);
  EXPECT_EQ(totals[1].seconds, 1);
  EXPECT_EQ(totals[1].counts.records_read, 10U);
  EXPECT_EQ(totals[2].description.operations, "count");
  EXPECT_EQ(totals[2].seconds, 2);
}

TEST_F(CountsOfANode, CountsLostPartsThatAreComputedAgain) {
  for (const flow::Part part : {0U, 1U, 2U}) counter_.on_part_done({{0, 0}, part});
  EXPECT_EQ(counter_.report().parts_again, 0U);
  counter_.on_part_done({{0, 0}, 1});
  EXPECT_EQ(counter_.report().parts_again, 1U);
  begin(stage("count", 2, {cached_}), true);
  counter_.on_part_done({{1, 2}, 0});
  EXPECT_EQ(counter_.report().parts_again, 1U);
  counter_.on_part_done({{1, 0}, 0});
  counter_.on_part_done({{1, 1}, 0});
  EXPECT_EQ(counter_.report().parts_again, 3U) << "a part of the cache, and what it is made of";
  EXPECT_FALSE(counter_.report().has_taken_over);
  counter_.on_takeover();
  EXPECT_TRUE(counter_.report().has_taken_over);
}

TEST_F(CountsOfANode, IgnoresWhatTheActionDoesNotHave) {
  counter_.on_part_done({{7, 0}, 0});
  counter_.on_part_done({{0, 9}, 0});
  counter_.on_part_done({{0, 0}, 9});
  counter_.on_part_done({{0, 0}, 9});
  compute({{0, 0}, 9}, 1s, 2s);
  EXPECT_EQ(counter_.report().parts_again, 0U);
  EXPECT_TRUE(counter_.report().current.empty());
}

TEST_F(CountsOfANode, BoundsTheNumberOfDescriptions) {
  for (std::size_t i = 0; i < FlowCounter::totals_max + 10; ++i)
    begin(stage("stage " + std::to_string(i), 2, {stage("text", 3)}), true);
  const auto totals = counter_.report().totals;
  EXPECT_EQ(totals.size(), FlowCounter::totals_max);
  EXPECT_EQ(totals.back().description.operations, "other stages");
  EXPECT_EQ(totals.back().runs, 13U);
}

}  // namespace
}  // namespace starling::actor
