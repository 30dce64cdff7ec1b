/// Tests how the intervals of several nodes become one trace, and the offsets of their clocks.
#include "starling/tools/cluster/follow/node_traces.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace starling::program {
namespace {

using namespace std::chrono_literals;

TEST(ClockOffset, IsThatOfTheShortestRoundTrip) {
  ClockOffset offset;
  EXPECT_FALSE(offset.is_known());
  offset.add(1000ms, 1400ms, 100ms);
  EXPECT_EQ(offset.zero(), 1100ms);
  EXPECT_EQ(offset.error(), 200ms);
  offset.add(2000ms, 2010ms, 1000ms);
  offset.add(3000ms, 3100ms, 2050ms);
  EXPECT_EQ(offset.zero(), 1005ms);
  EXPECT_EQ(offset.error(), 5ms);
  EXPECT_EQ(offset.drift(), 0ms);
}

TEST(ClockOffset, KnowsADriftThatRequestsShow) {
  ClockOffset offset;
  offset.add(2000ms, 2010ms, 1000ms);  // the node's 0 was at 1000 ms to 1010 ms
  offset.add(9000ms, 9020ms, 7970ms);  // and now at 1030 ms to 1050 ms
  EXPECT_EQ(offset.zero(), 1005ms);
  EXPECT_EQ(offset.drift(), 20ms);
  offset.add(20'000ms, 20'020ms, 19'050ms);  // 950 ms to 970 ms
  EXPECT_EQ(offset.drift(), 30ms);
}

std::string name_of(wire::NodeId node) { return std::string(1, static_cast<char>('a' + node)); }

/// Returns an interval of worker 2 that begins at `from_ms` and takes 1 ms.
wire::TraceInterval interval(std::uint64_t from_ms, core::Step step = 1) {
  return {2,    from_ms * 1'000'000, 1'000'000,
          step, std::nullopt,        static_cast<std::uint8_t>(actor::Activity::read)};
}

TEST(NodeTraces, ShiftEachNodeToTheFirstThatHasStarted) {
  NodeTraces traces;
  traces.receive({0, 5'000'000, 0, {interval(0), interval(1)}}, 1010ms, 1012ms);  // 0 at 1006 ms
  traces.receive({1, 9'000'000, 0, {interval(3)}}, 1010ms, 1014ms);               // 0 at 1003 ms
  const Trace trace = traces.trace(name_of);
  ASSERT_EQ(trace.processes.size(), 2U);
  EXPECT_EQ(trace.processes[0].name, "node a");
  EXPECT_EQ(trace.processes[0].shift, 3ms);
  EXPECT_EQ(trace.processes[0].clock->error, 1ms);
  ASSERT_EQ(trace.processes[0].rows.size(), 1U);
  EXPECT_EQ(trace.processes[0].rows[0].worker, 2U);
  EXPECT_EQ(trace.processes[0].rows[0].intervals[1].to, 2ms);
  EXPECT_EQ(trace.processes[1].name, "node b");
  EXPECT_EQ(trace.processes[1].shift, 0ms);
  EXPECT_EQ(trace.dropped, 0U);
  EXPECT_EQ(trace.warning, "");
}

TEST(NodeTraces, MarkWhatTheNodeHadDropped) {
  NodeTraces traces;
  traces.receive({0, 2'000'000, 0, {interval(0), interval(1)}}, 0ms, 2ms);
  EXPECT_EQ(traces.next_of(0), 2U);
  EXPECT_EQ(traces.next_of(1), 0U);
  traces.receive({0, 9'000'000, 7, {interval(7)}}, 7ms, 9ms);
  EXPECT_EQ(traces.next_of(0), 8U);
  const Trace trace = traces.trace(name_of);
  EXPECT_EQ(trace.dropped, 5U);
  EXPECT_EQ(trace.dropped_from, 2ms);
  ASSERT_EQ(trace.processes[0].marks.size(), 1U);
  EXPECT_EQ(trace.processes[0].marks[0].at, 2ms);
  EXPECT_EQ(trace.processes[0].marks[0].text, "5 intervals are missing here");
  EXPECT_NE(trace.warning.find("5 intervals are missing, the first from 0.002 s on"),
            std::string::npos)
      << trace.warning;
}

TEST(NodeTraces, TakeNoReplyTwice) {
  NodeTraces traces;
  const wire::TraceIntervals reply{0, 2'000'000, 0, {interval(0)}};
  traces.receive(reply, 0ms, 2ms);
  traces.receive(reply, 0ms, 2ms);
  EXPECT_EQ(traces.trace(name_of).processes[0].rows[0].intervals.size(), 1U);
}

TEST(NodeTraces, AreFullAtTheirBound) {
  NodeTraces traces{2};
  traces.receive({0, 2'000'000, 0, {interval(0), interval(1)}}, 0ms, 2ms);
  EXPECT_TRUE(traces.is_full());
  traces.receive({0, 3'000'000, 2, {interval(2)}}, 0ms, 2ms);
  const Trace trace = traces.trace(name_of);
  EXPECT_EQ(trace.processes[0].rows[0].intervals.size(), 2U);
  EXPECT_EQ(trace.processes[0].marks.at(0).text, "not fetched from here on");
  EXPECT_NE(trace.warning.find("at most 2 intervals: none was fetched from 0.002 s on"),
            std::string::npos)
      << trace.warning;
}

TEST(NodeTraces, IgnoreIntervalsThatNoWorkerCanHave) {
  NodeTraces traces;
  auto unknown_activity = interval(1);
  unknown_activity.activity = 200;
  auto unknown_worker = interval(1);
  unknown_worker.worker = 1'000'000;
  auto unknown_laggard = interval(1);
  unknown_laggard.awaited = 1'000'000;
  auto too_late = interval(1);
  too_late.from_ns = UINT64_MAX;
  auto too_long = interval(1);
  too_long.duration_ns = UINT64_MAX;
  traces.receive(
      {0,
       2'000'000,
       0,
       {unknown_activity, unknown_worker, unknown_laggard, too_late, too_long, interval(1)}},
      0ms, 2ms);
  traces.receive({1, UINT64_MAX, 0, {interval(1)}}, 0ms, 2ms);
  const Trace trace = traces.trace(name_of);
  ASSERT_EQ(trace.processes.size(), 1U);
  ASSERT_EQ(trace.processes[0].rows.size(), 1U);
  EXPECT_EQ(trace.processes[0].rows[0].intervals.size(), 1U);
}

}  // namespace
}  // namespace starling::program
