/// Tests the file of `--trace` for timelines that no job has made.
#include "starling/tools/train/trace_file.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "starling/tools/registry/built_in.hpp"
#include "starling/tools/train/recorder.hpp"
#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"
#include "tests/tools/train/linear_run.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

/// Makes `steps` steps of a worker that waits for nobody. It reads for 1.5 us and computes for 3 us
/// in each. The worker begins after 10 us.
void make_steps(actor::WorkerTimeline& timeline, core::Step steps) {
  core::WorkerOptions options;
  options.central = false;
  options.barrier = {barrier::Asp{}, std::nullopt};
  options.workers = std::make_shared<const std::vector<core::MemberId>>(1, 0);
  options.last_step = steps;
  core::Worker worker{options};
  Random random{1};
  core::Effects out;
  core::Time now = 10us;
  worker.start({now, random, out});
  timeline.follow(worker, now);
  for (core::Step step = 0; step < steps; ++step) {
    now += 1500ns;
    worker.on_values({now, random, out}, step, {});
    timeline.follow(worker, now);
    now += 3us;
    worker.on_update({now, random, out}, step, {});
    worker.on_written({now, random, out}, step + 1);
    timeline.follow(worker, now);
  }
}

class TraceFile : public testing::Test {
 protected:
  [[nodiscard]] Json written(const actor::Timeline& timeline) const {
    const auto done = write_trace((folder_.path() / "t.json").string(), {}, trace_of({}, timeline));
    EXPECT_TRUE(done) << done.error().message;
    return Json::parse(folder_.read("t.json"));
  }

  /// Returns the events of this kind in the row of a worker.
  [[nodiscard]] static std::vector<Json> events_of(const Json& trace, const char* kind,
                                                   std::size_t worker) {
    std::vector<Json> events;
    for (const Json& event : trace["traceEvents"])
      if (event["ph"] == kind && event.contains("tid") && event["tid"] == worker + 1)
        events.push_back(event);
    return events;
  }

  Folder folder_;
};

TEST_F(TraceFile, HasAnEventForEachInterval) {
  actor::Timeline timeline{2};
  make_steps(timeline.of(1), 2);
  const Json trace = written(timeline);
  EXPECT_TRUE(events_of(trace, "X", 0).empty());
  EXPECT_EQ(events_of(trace, "M", 0).at(0)["args"]["name"], "worker 0");
  EXPECT_EQ(events_of(trace, "M", 1).at(0)["args"]["name"], "worker 1");
  const auto event = [](const char* name, double ts, double dur, const Json& args) {
    return Json{{"ph", "X"}, {"name", name}, {"pid", 1},    {"tid", 2},
                {"ts", ts},  {"dur", dur},   {"args", args}};
  };
  EXPECT_EQ(events_of(trace, "X", 1),
            (std::vector<Json>{
                event("start", 0, 10, Json::object()), event("read", 10, 1.5, {{"step", 1}}),
                event("compute", 11.5, 3, {{"step", 1}}), event("read", 14.5, 1.5, {{"step", 2}}),
                event("compute", 16, 3, {{"step", 2}})}));
  EXPECT_EQ(trace["otherData"]["intervals_dropped"], 0);
  EXPECT_EQ(trace_of({}, timeline).warning, "");
}

/// The text is written in several pieces.
TEST_F(TraceFile, MayBeLong) {
  actor::Timeline timeline{3};
  for (core::MemberId id = 0; id < 3; ++id) make_steps(timeline.of(id), 5000);
  const Json trace = written(timeline);
  for (std::size_t worker = 0; worker < 3; ++worker)
    EXPECT_EQ(events_of(trace, "X", worker).size(), 10'001U);
  EXPECT_EQ(trace["traceEvents"].size(), 1 + 3 * 10'002U);
}

TEST_F(TraceFile, SaysFromWhenOnNothingWasRecorded) {
  actor::Timeline timeline{2, 6};
  make_steps(timeline.of(0), 1);
  make_steps(timeline.of(1), 2);
  const Json trace = written(timeline);
  EXPECT_EQ(events_of(trace, "X", 1).size(), 3U);
  EXPECT_TRUE(events_of(trace, "i", 0).empty());
  const auto marks = events_of(trace, "i", 1);
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0]["ts"], 14.5);
  EXPECT_EQ(trace["otherData"]["intervals_dropped"], 2);
  EXPECT_EQ(trace["otherData"]["dropped_from_s"], 14.5e-6);
  EXPECT_EQ(trace_of({}, timeline).warning,
            "a trace holds at most 6 intervals: from 1.45e-05 s on, 2 of the workers' intervals "
            "were not recorded; valid: a shorter job, or fewer workers");
}

/// The recorder of a job that ends without having done anything.
class TraceRecorder : public TraceFile {
 protected:
  TraceRecorder() { ready_.job.quiet = true; }

  [[nodiscard]] EndedJob end(actor::Timeline& timeline) {
    outcome_.end = actor::Outcome::End::stopped;
    Recorder recorder{ready_, {}};
    recorder.set_trace(trace_of(ready_.resolved, timeline));
    return recorder.end(outcome_);
  }

  Registry registry_ = with_built_in({});
  AnyData data_ = load_source(registry_, "linear:d=2,n=4", 1).value();
  actor::Outcome outcome_;
  PreparedRun ready_ = linear_run(registry_, data_);
};

TEST_F(TraceRecorder, WarnsOfIntervalsThatAreMissing) {
  actor::Timeline timeline{1, 2};
  make_steps(timeline.of(0), 4);
  ready_.job.trace = (folder_.path() / "t.json").string();
  testing::internal::CaptureStderr();
  const EndedJob ended = end(timeline);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(),
                       "t.json: a trace holds at most 2 intervals: from 1.15e-05 s on"));
  EXPECT_EQ(ended.trace, ready_.job.trace);
  EXPECT_EQ(ended.error, "");
}

TEST_F(TraceRecorder, FailsIfTheFileCannotBeWritten) {
  actor::Timeline timeline{1};
  ready_.job.trace = (folder_.path() / "gone" / "t.json").string();
  const EndedJob ended = end(timeline);
  EXPECT_TRUE(contains(ended.error, "gone/t.json: cannot be written")) << ended.error;
  EXPECT_EQ(ended.trace, "");
}

}  // namespace
}  // namespace starling::program
