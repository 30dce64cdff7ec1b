/// Tests what is shown of a flow on nodes: its stages, merged from the nodes' reports, and that it
/// waits.
#include "starling/tools/cluster/follow/flow_stages.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "starling/tools/cluster/follow/blocked_notice.hpp"
#include "starling/tools/run/stage_line.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

const flow::StageDescription text_stage{"text | map | sort_by", 70, "ranges(2)"};
const flow::StageDescription sort_stage{"sort_by | collect", 2};

wire::FlowReport report_of(wire::NodeId node, std::vector<std::uint64_t> parts,
                           std::uint64_t records, double seconds) {
  const flow::TaskCounts counts{records, records, 8 * records, 0};
  return {.node = node,
          .actions = 2,
          .stages = 2,
          .current = {{1, text_stage, std::move(parts), counts, seconds}},
          .totals = {{text_stage, 3, counts, seconds}, {sort_stage, 1, {}, 0}}};
}

TEST(FlowStages, AddUpTheReportsOfNodes) {
  FlowStages stages;
  EXPECT_FALSE(stages.has_begun());
  EXPECT_FALSE(stages.running({1, 2}));
  stages.receive(report_of(1, {0b11}, 100, 2));
  stages.receive(report_of(2, {0b110, 1}, 300, 4));
  EXPECT_TRUE(stages.has_begun());
  const auto running = stages.running({1, 2});
  ASSERT_TRUE(running);
  EXPECT_EQ(running->parts_done, 4U) << "0, 1, 2 and 64";
  EXPECT_EQ(print(*running),
            "action 2, stage 1 of 2, text | map | sort_by: 4/70 parts, 100 records/s, 3.1 KiB "
            "shuffled, stage ends in 66 s");
  EXPECT_EQ(stages.running({2})->parts_done, 3U) << "those of node 1 are lost";
  const auto summaries = stages.summaries();
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].description, text_stage);
  EXPECT_EQ(summaries[0].runs, 3U);
  EXPECT_EQ(summaries[0].counts.records_read, 400U);
  EXPECT_EQ(summaries[0].seconds, 4);
}

TEST(FlowStages, ShowTheLatestAction) {
  FlowStages stages;
  wire::FlowReport late = report_of(1, {0b11}, 100, 2);
  stages.receive(late);
  wire::FlowReport next = report_of(2, {}, 0, 0);
  next.actions = 3;
  next.current = {{0, text_stage, {1}, {}, 1},
                  {1, text_stage, {~std::uint64_t{0}, 0x3f}, {}, 1},
                  {2, sort_stage, {1}, {}, 1}};
  stages.receive(next);
  EXPECT_EQ(stages.running({1, 2})->number, 2U) << "stage 1 is complete";
  EXPECT_EQ(stages.running({1, 2})->parts_done, 1U);
  next.current[2].parts_done = {~std::uint64_t{0}};
  stages.receive(next);
  EXPECT_EQ(stages.running({1, 2})->parts_done, 2U) << "no more than the stage has";
}

TEST(FlowStages, AreNotHarmedByNodesThatReportNonsense) {
  FlowStages stages;
  wire::FlowReport report = report_of(1, {1}, 1, std::numeric_limits<double>::quiet_NaN());
  report.current[0].description.operations = "a\x1b[2J";
  stages.receive(report);
  EXPECT_EQ(stages.running({1})->description.operations, "a\\x1b[2J");
  EXPECT_EQ(stages.running({1})->seconds, 0);
  EXPECT_EQ(stages.summaries()[0].seconds, 0);
}

TEST(FlowStages, CountThePartsThatWereComputedAgain) {
  FlowStages stages;
  wire::FlowReport first = report_of(1, {}, 0, 0);
  first.parts_again = 1;
  stages.receive(first);
  EXPECT_EQ(print(stages.recomputed_parts()), "1 part computed again");
  wire::FlowReport second = report_of(2, {}, 0, 0);
  second.parts_again = 2;
  second.has_taken_over = true;
  stages.receive(second);
  EXPECT_EQ(print(stages.recomputed_parts()), "at least 3 parts computed again");
  EXPECT_EQ(print(RecomputedParts{}), "0 parts computed again");
}

TEST(StageLine, NamesWhatThereIs) {
  EXPECT_EQ(stage_line({"text | count", 4}, 0, {}, 0), "text | count: 0/4 parts, 0 records/s");
  EXPECT_EQ(stage_line({"text | cache", 4}, 4, {50, 50, 2048, 1024}, 2),
            "text | cache: 4/4 parts, 25 records/s, 2 KiB cached, 1 KiB spilled");
}

TEST(StageLine, LeavesOutATimeThatIsShort) {
  EXPECT_EQ(stage_line({"text | count", 4}, 2, {}, 0.9), "text | count: 2/4 parts, 0 records/s");
  EXPECT_EQ(stage_line({"text | count", 4}, 1, {}, 0.5),
            "text | count: 1/4 parts, 0 records/s, stage ends in 1.5 s");
}

TEST(RunSummary, NamesWorkersThatAreGone) {
  RunInfo info;
  info.flow = "sort";
  info.inputs = {"a", "b"};
  info.workers = 5;
  info.seconds = 1.5;
  EXPECT_EQ(run_text(info, {}), "sort: 2 files, 5 workers, 1.500 s\nresult: 0 lines\n");
  info.lost = LostWorkers{1, 2};
  info.recomputed = RecomputedParts{7, false};
  EXPECT_EQ(run_text(info, {}),
            "sort: 2 files, 5 workers (1 has left, 2 have died), 1.500 s, 7 parts computed again\n"
            "result: 0 lines\n");
}

TEST(BlockedNotice, IsRepeatedNowAndThen) {
  BlockedNotice notice;
  const BlockedNotice::Clock::time_point start{};
  EXPECT_FALSE(notice.update("", start));
  EXPECT_EQ(notice.update("for a", start + 1s), "waits: for a");
  EXPECT_FALSE(notice.update("for a", start + 10s));
  EXPECT_EQ(notice.update("for a", start + 11s), "has waited for 10 s: for a");
  EXPECT_FALSE(notice.update("for a and b", start + 13s)) << "it is soon after the last one";
  EXPECT_EQ(notice.update("for a and b", start + 15s), "waits: for a and b");
  EXPECT_EQ(notice.update("", start + 16s), "goes on");
  EXPECT_FALSE(notice.update("", start + 17s));
}

TEST(BlockedNotice, DoesNotFlood) {
  BlockedNotice notice;
  int notices = 0;
  for (int i = 0; i < 600; ++i)  // a minute, in which the job is blocked half of the time
    if (notice.update(i % 2 == 0 ? "for a" : "", BlockedNotice::Clock::time_point{i * 100ms}))
      ++notices;
  EXPECT_GE(notices, 20);
  EXPECT_LE(notices, 45);
}

}  // namespace
}  // namespace starling::program
