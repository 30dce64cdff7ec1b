/// Tests reading step times, good and bad files, and drawing step times like them.
#include "starling/tools/advise/step_trace.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// Returns a CSV file in which each worker has `steps` steps of `seconds`.
std::string csv_of(const std::vector<std::string>& workers, std::size_t steps,
                   const std::string& seconds = "0.1") {
  std::string text = "worker,step,seconds\n";
  for (std::size_t step = 1; step <= steps; ++step)
    for (const std::string& worker : workers)
      text += worker + "," + std::to_string(step) + "," + seconds + "\n";
  return text;
}

/// Returns the error of a CSV file.
std::string error_of(const std::string& text) {
  const auto trace = parse_step_csv(text, "t.csv");
  return trace ? "no error" : trace.error().message;
}

TEST(StepCsv, HoldsTheStepsOfEachWorkerInTheirOrder) {
  std::string text = csv_of({"b", "a 1"}, 19, "0.25");
  text += "b,100,1.5\na 1 , 20, 2e-3\n";
  const auto trace = parse_step_csv(text, "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[0].name, "b");
  EXPECT_EQ((*trace)[1].name, "a 1");
  ASSERT_EQ((*trace)[0].durations.size(), 20U);
  EXPECT_EQ((*trace)[0].durations.front(), 250ms);
  EXPECT_EQ((*trace)[0].durations.back(), 1500ms);
  EXPECT_EQ((*trace)[1].durations.back(), 2ms);
}

using actor::Activity;

actor::Interval interval(int from, int to, core::Step step, Activity activity) {
  return {.from = from * 1ms, .to = to * 1ms, .step = step, .activity = activity};
}

TEST(CompleteSteps, SumWhatIsNotWaitingAndLeaveOutTheLast) {
  const std::vector<actor::Interval> all{
      interval(0, 1, 0, Activity::start),     interval(1, 3, 1, Activity::read),
      interval(3, 10, 1, Activity::compute),  interval(10, 15, 1, Activity::wait),
      interval(15, 19, 2, Activity::compute), interval(19, 20, 2, Activity::wait),
      interval(20, 22, 3, Activity::compute)};
  EXPECT_EQ(complete_steps(all), (std::vector<core::Time>{9ms, 4ms}));
  EXPECT_EQ(complete_steps(std::span{all}.subspan(2)), (std::vector<core::Time>{4ms}))
      << "the first step was recorded in part";
  EXPECT_TRUE(complete_steps({}).empty());
}

TEST(CompleteSteps, LeaveOutThoseAroundAGap) {
  const std::vector<actor::Interval> all{
      interval(0, 1, 0, Activity::start),     interval(1, 3, 1, Activity::compute),
      interval(3, 10, 2, Activity::compute),  interval(11, 15, 3, Activity::compute),
      interval(15, 19, 4, Activity::compute), interval(19, 21, 5, Activity::compute)};
  EXPECT_EQ(complete_steps(all), (std::vector<core::Time>{2ms, 4ms}));
}

/// A worker that was excluded joins again, and makes some of its steps anew.
TEST(CompleteSteps, OfAWorkerThatBeginsAnewAreNotAddedUp) {
  const std::vector<actor::Interval> all{
      interval(0, 1, 0, Activity::start),    interval(1, 3, 1, Activity::compute),
      interval(3, 7, 2, Activity::compute),  interval(7, 8, 3, Activity::compute),
      interval(20, 21, 0, Activity::start),  interval(21, 26, 2, Activity::compute),
      interval(26, 27, 3, Activity::compute)};
  EXPECT_EQ(complete_steps(all), (std::vector<core::Time>{2ms, 4ms, 5ms}));
}

TEST(StepCsv, MayEndWithEmptyLines) {
  EXPECT_TRUE(parse_step_csv(csv_of({"a", "b"}, 20) + "\n \r\n", "t.csv"));
  EXPECT_EQ(error_of("worker,step,seconds\n\na,1,1\n"),
            "t.csv:2: has 0 cells; valid: three, like a,1,0.25");
}

TEST(StepCsv, MayHaveTheLineEndsOfWindows) {
  std::string text = csv_of({"a", "b"}, 20);
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\r');
  EXPECT_TRUE(parse_step_csv(text, "t.csv"));
}

struct BadStepCsv {
  const char* row;
  const char* error;
};

void PrintTo(const BadStepCsv& bad, std::ostream* out) { *out << bad.row; }

class RefusesRow : public testing::TestWithParam<BadStepCsv> {};

/// The bad row is line 42: after the head and 20 steps of two workers.
TEST_P(RefusesRow, WithItsLine) {
  const std::string error = error_of(csv_of({"a", "b"}, 20) + GetParam().row + "\n");
  EXPECT_TRUE(error.starts_with("t.csv:42: ")) << error;
  EXPECT_NE(error.find(GetParam().error), std::string::npos) << error;
  EXPECT_NE(error.find("valid: "), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    StepCsv, RefusesRow,
    testing::Values(BadStepCsv{"a,21", "has 2 cells; valid: three"},
                    BadStepCsv{"a,21,0.1,0.2", "has 4 cells; valid: three"},
                    BadStepCsv{",21,0.1", "worker ''; valid: a name"},
                    BadStepCsv{"a,20,0.1", "step 20 of worker 'a' comes after its step 20"},
                    BadStepCsv{"a,3,0.1", "step 3 of worker 'a' comes after its step 20"},
                    BadStepCsv{"a,21,0", "seconds: '0'; valid: a number above 0"},
                    BadStepCsv{"a,21,-0.1", "seconds: '-0.1'; valid: a number above 0"},
                    BadStepCsv{"a,21,nan", "seconds: 'nan'; valid: a number above 0"},
                    BadStepCsv{"a,21,100000", "seconds: '100000'; valid: a number above 0"},
                    BadStepCsv{"a,21,20ms", "seconds: '20ms'; valid: a number above 0"}));

TEST(StepCsv, RefusesAStepThatIsNoWholeNumber) {
  const std::string error = error_of(csv_of({"a", "b"}, 20) + "a,2.5,0.1\n");
  EXPECT_TRUE(error.starts_with("t.csv:42: step: ")) << error;
}

TEST(StepCsv, RefusesAFileThatIsCutOffWithinALine) {
  std::string text = csv_of({"a", "b"}, 25);
  text.resize(text.size() - 3);
  EXPECT_EQ(error_of(text),
            "t.csv:51: the line has no end: the file is cut off; valid: a new line after each row");
}

TEST(StepCsv, RefusesAnotherHead) {
  const std::string error = error_of("worker;step;seconds\na,1,0.1\n");
  EXPECT_TRUE(error.starts_with("t.csv:1: 'worker;step;seconds'; valid: the head")) << error;
}

TEST(StepCsv, RefusesTooFewStepsAndTooFewOrTooManyWorkers) {
  EXPECT_NE(error_of(csv_of({"a", "b"}, 19)).find("has 19 steps of worker 'a'; valid: 20 or more"),
            std::string::npos);
  EXPECT_NE(error_of(csv_of({"a"}, 20)).find("has steps of 1 worker; valid: 2 workers or more"),
            std::string::npos);
  std::vector<std::string> many;
  for (int i = 0; i < 65; ++i) many.push_back("w" + std::to_string(i));
  EXPECT_NE(error_of(csv_of(many, 20)).find("has steps of 65 workers; valid: at most 64"),
            std::string::npos);
}

/// Returns a trace in the format of `train --trace`, with an interval on each line, in which each
/// of two workers makes 21 steps of 1 + 2 + 3 ms and waits for 50 ms after each. The intervals of
/// `lost` (worker, step) are missing.
std::string json_trace(const std::string& other = "{\"intervals_dropped\": 0}",
                       std::set<std::pair<int, int>> lost = {}) {
  std::string text = "{\"otherData\": " + other +
                     ",\n\"traceEvents\": [\n{\"ph\": \"M\", \"name\": "
                     "\"process_name\", \"pid\": 1, \"args\": {\"name\": \"x\"}}";
  int now = 0;
  const auto add = [&](int worker, const char* name, int step, int microseconds) {
    const int begin = std::exchange(now, now + microseconds);
    if (lost.contains({worker, step})) return;
    text += ",\n{\"ph\": \"X\", \"name\": \"" + std::string{name} +
            "\", \"pid\": 1, \"tid\": " + std::to_string(worker + 1) +
            ", \"ts\": " + std::to_string(begin) + ", \"dur\": " + std::to_string(microseconds) +
            ", \"args\": {\"step\": " + std::to_string(step) + "}}";
  };
  for (int worker : {0, 1}) {
    now = 0;
    add(worker, "start", 0, 10);
    for (int step = 1; step <= 21; ++step) {
      add(worker, "read", step, 1000);
      add(worker, "compute", step, 2000);
      add(worker, "write", step, 3000);
      add(worker, "wait", step, 50'000);
    }
  }
  return text + "\n]}\n";
}

TEST(StepJson, AStepIsTheSumOfItsIntervalsWithoutWaiting) {
  const auto trace = parse_step_json(json_trace(), "t.json");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[1].name, "1");
  ASSERT_EQ((*trace)[1].durations.size(), 21U);
  for (const auto& duration : (*trace)[1].durations) EXPECT_EQ(duration, 6ms);
}

/// Worker 1 was restarted on another node, and makes all steps again.
TEST(StepJson, KeepsTheStepsOfTwoProcessesApart) {
  std::string text = json_trace();
  const std::string again = json_trace();
  std::string more;
  for (auto at = again.find("\"tid\": 2"); at != std::string::npos;
       at = again.find("\"tid\": 2", at + 1)) {
    const auto begin = again.rfind('\n', at) + 1;
    more += ",\n" + again.substr(begin, again.find('}', again.find('}', at) + 1) + 1 - begin);
  }
  for (auto at = more.find("\"pid\": 1"); at != std::string::npos; at = more.find("\"pid\": 1"))
    more.replace(at, 8, "\"pid\": 2");
  text.insert(text.rfind("\n]}"), more);
  const auto trace = parse_step_json(text, "t.json");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 2U);
  EXPECT_EQ((*trace)[1].durations.size(), 42U);
  for (const auto& duration : (*trace)[1].durations) EXPECT_EQ(duration, 6ms);
}

TEST(StepJson, LeavesOutTheLastStepOfAnIncompleteTrace) {
  const auto trace = parse_step_json(json_trace("{\"intervals_dropped\": 7}"), "t.json");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ((*trace)[0].durations.size(), 20U);
}

/// The last intervals of a node that died are missing.
TEST(StepJson, LeavesOutTheLastStepsOfATraceOfNodes) {
  const auto trace = parse_step_json(json_trace("{\"nodes\": []}"), "t.json");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ((*trace)[0].durations.size(), 20U);
}

TEST(StepJson, LeavesOutTheStepsAroundMissingIntervals) {
  // Step 21 is there to leave 20 steps.
  for (const auto& [lost, left] : std::map<int, std::size_t>{{0, 20}, {21, 20}}) {
    const auto trace =
        parse_step_json(json_trace("{\"intervals_dropped\": 0}", {{1, lost}}), "t.json");
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ((*trace)[0].durations.size(), 21U);
    EXPECT_EQ((*trace)[1].durations.size(), left) << "step " << lost << " is lost";
    for (const auto& duration : (*trace)[1].durations) EXPECT_EQ(duration, 6ms);
  }
  const auto trace = parse_step_json(json_trace("{\"intervals_dropped\": 0}", {{1, 8}}), "t.json");
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().message.find("18 steps of worker '1'"), std::string::npos)
      << trace.error().message;
}

/// There the steps of slow workers have less to compute.
TEST(StepJson, RefusesTracesOfUnequalSteps) {
  const auto error = [](const std::string& other_data) {
    const auto trace = parse_step_json(json_trace(other_data), "t.json");
    return trace ? "no error" : trace.error().message;
  };
  EXPECT_EQ(error(R"({"barrier": "bsp", "batch": "32"})"), "no error");
  EXPECT_EQ(error(R"({"barrier": "absp", "batch": "32"})"),
            "t.json: has barrier absp, which cuts the steps of slow workers short, so slow workers "
            "look as fast as others; valid: a job with another barrier");
  EXPECT_EQ(error(R"({"barrier": "bsp", "batch": "dynamic:total=64"})"),
            "t.json: has batch dynamic:total=64, which gives slow workers less to compute, so slow "
            "workers look as fast as others; valid: a job with another batch");
}

TEST(StepJson, RefusesACutOffFileWithItsLine) {
  std::string text = json_trace();
  text.resize(text.find("\"wait\"") - 10);
  const auto trace = parse_step_json(text, "t.json");
  ASSERT_FALSE(trace);
  EXPECT_TRUE(
      trace.error().message.starts_with("t.json:8: the JSON has no end: the file is cut off"))
      << trace.error().message;
}

TEST(StepJson, RefusesOtherJsonAndOtherText) {
  const auto other = parse_step_json("{\"a\": 1}", "t.json");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("has steps of 0 workers"), std::string::npos);
  const auto text = parse_step_json("{\n\"a\": x}", "t.json");
  ASSERT_FALSE(text);
  EXPECT_TRUE(text.error().message.starts_with("t.json:2: is not JSON")) << text.error().message;
  const auto number = parse_step_json("{\"a\": 1e999}", "t.json");
  ASSERT_FALSE(number);
  EXPECT_TRUE(number.error().message.starts_with("t.json: has a number that is too large"));
  const auto event = parse_step_json("{\"traceEvents\": [{\"name\": \"read\", \"tid\": 1}]}", "t");
  ASSERT_FALSE(event);
  EXPECT_TRUE(event.error().message.starts_with("t: event 1 ")) << event.error().message;
}

TEST(Resampled, DrawsBlocksOfConsecutiveRecordedSteps) {
  auto trace = std::make_shared<StepTrace>(2);
  for (int i = 1; i <= 100; ++i) (*trace)[0].durations.emplace_back(1ms * i);
  (*trace)[1].durations.assign(20, 7ms);
  StepTimes times = resampled(trace);
  Random random{1};
  std::set<core::Time> starts;
  core::Time last{};
  for (std::size_t step = 0; step < 100 * block_steps; ++step) {
    const core::Time time = times(0, step + 1, random);
    if (step % block_steps == 0)
      starts.insert(time);
    else
      EXPECT_EQ(time, last == 100ms ? 1ms : last + 1ms);
    last = time;
    EXPECT_EQ(times(1, step + 1, random), 7ms);
  }
  EXPECT_GT(starts.size(), 40U);  // of 100 uniform draws, 63 are expected to differ
}

TEST(RecordedFigures, AreMeanJitterAndSlowness) {
  StepTrace trace{{"fast", {}}, {"slow", std::vector<core::Time>(20, 300ms)}};
  for (int i = 0; i < 10; ++i) {
    trace[0].durations.push_back(50ms);
    trace[0].durations.push_back(150ms);
  }
  const auto figures = figures_of(trace);
  EXPECT_NEAR(figures[0].mean_s, 0.1, 1e-12);
  EXPECT_NEAR(figures[0].jitter, 0.5 * std::sqrt(20.0 / 19), 1e-9);
  EXPECT_NEAR(figures[1].slowness, 3, 1e-9);
  EXPECT_NEAR(figures[1].jitter, 0, 1e-9);
}

}  // namespace
}  // namespace starling::program
