/// Tests the record of what each worker does when.
#include "starling/actor/job/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "tests/actor/cluster/small_jobs.hpp"
#include "tests/actor/job/faulty_model.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

/// Expects that the intervals of each worker follow each other from the start of the job, without a
/// gap, and have a duration.
void expect_whole(const Timeline& timeline) {
  for (const WorkerTimeline& worker : timeline.workers()) {
    ASSERT_FALSE(worker.intervals().empty());
    core::Time end{};
    for (const Interval& interval : worker.intervals()) {
      EXPECT_EQ(interval.from, end);
      EXPECT_LT(interval.from, interval.to);
      end = interval.to;
    }
    EXPECT_EQ(worker.intervals().front().activity, Activity::start);
  }
}

/// Returns the sum of the durations of the intervals with this activity.
core::Time time_in(const WorkerTimeline& worker, Activity activity) {
  core::Time sum{};
  for (const Interval& interval : worker.intervals())
    if (interval.activity == activity) sum += interval.to - interval.from;
  return sum;
}

double waiting_share(const Timeline& timeline) {
  core::Time waited{};
  core::Time total{};
  for (const WorkerTimeline& worker : timeline.workers()) {
    waited += time_in(worker, Activity::wait);
    total += worker.intervals().back().to;
  }
  return static_cast<double>(waited.count()) / static_cast<double>(total.count());
}

std::set<Activity> activities(const Timeline& timeline) {
  std::set<Activity> all;
  for (const WorkerTimeline& worker : timeline.workers())
    for (const Interval& interval : worker.intervals()) all.insert(interval.activity);
  return all;
}

/// Returns options of a job in which seven workers wait for the eighth.
TrainOptions job_with_straggler(core::Mode mode) {
  TrainOptions job;
  job.job.mode = mode;
  job.job.workers = 8;
  job.job.barrier = barrier::parse("pssp:s=1,beta=5").value();
  job.job.delay = Distribution{laws::Constant{2ms}};
  job.job.stragglers = {parse_straggler("1:4x").value()};
  job.job.steps = 40;
  job.batch = 4;
  return job;
}

class TracedJob : public testing::TestWithParam<core::Mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, TracedJob,
                         testing::Values(core::Mode::central, core::Mode::hybrid, core::Mode::peer),
                         [](const auto& mode) { return core::print(mode.param); });

TEST_P(TracedJob, WaitsAsLongAsItReports) {
  TrainOptions job = job_with_straggler(GetParam());
  Timeline timeline{job.job.workers};
  job.job.timeline = &timeline;
  const Outcome outcome = train_text("softmax", load("digits:n=200"), nullptr, job);
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  expect_whole(timeline);
  EXPECT_EQ(timeline.dropped(), 0U);
  EXPECT_GT(outcome.last.waiting_share, 0.1);
  EXPECT_NEAR(waiting_share(timeline), outcome.last.waiting_share,
              0.01 * outcome.last.waiting_share);
  EXPECT_TRUE(activities(timeline).contains(Activity::compute));
  // A recorded delay begins later than its timer if the thread is interrupted between the two.
  EXPECT_GE(time_in(timeline.workers()[0], Activity::delay), 40 * 1.8ms);
  EXPECT_GE(time_in(timeline.workers()[7], Activity::delay), 40 * 4 * 1.8ms);
}

TEST_P(TracedJob, NumbersTheSteps) {
  TrainOptions job = job_with_straggler(GetParam());
  Timeline timeline{job.job.workers};
  job.job.timeline = &timeline;
  ASSERT_EQ(train_text("softmax", load("digits:n=200"), nullptr, job).end, Outcome::End::completed);
  for (const WorkerTimeline& worker : timeline.workers()) {
    const auto& intervals = worker.intervals();
    EXPECT_TRUE(std::ranges::is_sorted(intervals, {}, &Interval::step));
    EXPECT_EQ(intervals.front().step, 0U);
    EXPECT_EQ(intervals[1].step, 1U);
    EXPECT_EQ(intervals.back().step, 40U);
    EXPECT_EQ(std::ranges::count(intervals, Activity::delay, &Interval::activity), 40);
  }
}

TEST_P(TracedJob, SaysForWhomWorkersWait) {
  TrainOptions job = job_with_straggler(GetParam());
  Timeline timeline{job.job.workers};
  job.job.timeline = &timeline;
  ASSERT_EQ(train_text("softmax", load("digits:n=200"), nullptr, job).end, Outcome::End::completed);
  core::Time for_anyone{};
  core::Time for_straggler{};
  for (core::MemberId id = 0; id < 8; ++id)
    for (const Interval& interval : timeline.workers()[id].intervals()) {
      if (!interval.awaited) continue;
      EXPECT_EQ(interval.activity, Activity::wait);
      EXPECT_NE(*interval.awaited, id);
      EXPECT_LT(*interval.awaited, 8U);
      for_anyone += interval.to - interval.from;
      if (*interval.awaited == 7) for_straggler += interval.to - interval.from;
    }
  EXPECT_GT(for_straggler, for_anyone / 2);
  EXPECT_GT(for_straggler, core::Time{0});
}

/// In exchanges that are barriers, workers wait for their updates to count.
class TracedExchange : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Barriers, TracedExchange, testing::Values("allreduce", "average:every=4"));

TEST_P(TracedExchange, WaitsForTheStraggler) {
  TrainOptions job = job_with_straggler(core::Mode::peer);
  job.job.barrier = {barrier::Bsp{}};
  job.job.exchange = GetParam();
  Timeline timeline{job.job.workers};
  job.job.timeline = &timeline;
  const Outcome outcome = train_text("softmax", load("digits:n=200"), nullptr, job);
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  expect_whole(timeline);
  // Seven of eight workers wait for three quarters of the time of the straggler's delays.
  EXPECT_GT(outcome.last.waiting_share, 0.3);
  EXPECT_NEAR(waiting_share(timeline), outcome.last.waiting_share,
              0.01 * outcome.last.waiting_share);
}

/// In the round of a barrier over all workers, each worker waits for the last one that arrives.
class TracedRounds : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Barriers, TracedRounds, testing::Values("bsp", "ssp:s=2", "ebsp:ahead=2"));

TEST_P(TracedRounds, SayForWhomWorkersWait) {
  TrainOptions job = job_with_straggler(core::Mode::central);
  job.job.barrier = barrier::parse(GetParam()).value();
  Timeline timeline{job.job.workers};
  job.job.timeline = &timeline;
  ASSERT_EQ(train_text("softmax", load("digits:n=200"), nullptr, job).end, Outcome::End::completed);
  core::Time for_straggler{};
  for (core::MemberId id = 0; id < 8; ++id)
    for (const Interval& interval : timeline.workers()[id].intervals()) {
      EXPECT_NE(interval.awaited, id) << "a worker does not wait for itself";
      if (interval.awaited == core::MemberId{7}) for_straggler += interval.to - interval.from;
    }
  core::Time waited{};
  for (const WorkerTimeline& worker : timeline.workers()) waited += time_in(worker, Activity::wait);
  EXPECT_GT(for_straggler, waited / 2);
}

TEST_P(TracedJob, DropsIntervalsBeyondItsBound) {
  TrainOptions job = job_with_straggler(GetParam());
  Timeline timeline{job.job.workers, 8 * 10};
  job.job.timeline = &timeline;
  ASSERT_EQ(train_text("softmax", load("digits:n=200"), nullptr, job).end, Outcome::End::completed);
  expect_whole(timeline);
  for (const WorkerTimeline& worker : timeline.workers()) {
    EXPECT_EQ(worker.intervals().size(), 10U);
    EXPECT_GE(worker.dropped(), 40U);
    ASSERT_TRUE(worker.dropped_from());
    EXPECT_EQ(*worker.dropped_from(), worker.intervals().back().to);
    EXPECT_GE(*worker.dropped_from(), *timeline.dropped_from());
  }
  EXPECT_GE(timeline.dropped(), 8 * 40U);
}

/// Matrix factorisation reads only the rows of the users and items of its batch.
TEST_P(TracedJob, RecordsPlansOnlyIfAStepNeedsAPart) {
  TrainOptions job = job_with_straggler(GetParam());
  job.job.delay = {};
  Timeline rows{job.job.workers};
  job.job.timeline = &rows;
  const models::Table ratings = load("ratings:users=20,items=16,rank=2,n=640,noise=0.1");
  ASSERT_EQ(train_text("mf:rank=4", ratings, nullptr, job).end, Outcome::End::completed);
  expect_whole(rows);
  EXPECT_TRUE(activities(rows).contains(Activity::plan));
  Timeline whole{job.job.workers};
  job.job.timeline = &whole;
  ASSERT_EQ(train_text("softmax", load("digits:n=200"), nullptr, job).end, Outcome::End::completed);
  EXPECT_FALSE(activities(whole).contains(Activity::plan));
}

/// The last interval of a worker that does not finish its step ends with the job.
TEST_P(TracedJob, IsWholeIfTheJobFails) {
  TrainOptions job = job_with_straggler(GetParam());
  job.job.attempts = 1;
  Timeline timeline{job.job.workers};
  job.job.timeline = &timeline;
  const FaultyModel model{.throws_max = 1};
  const models::Table data = load("linear:d=5,n=60");
  const Outcome outcome = train<FaultyModel, models::Table>(model, data, nullptr, job).value();
  ASSERT_EQ(outcome.end, Outcome::End::failed);
  expect_whole(timeline);
  // One worker has ended with its step.
  EXPECT_GE(std::ranges::count_if(timeline.workers(),
                                  [&](const WorkerTimeline& worker) {
                                    return worker.intervals().back().to >= outcome.last.elapsed;
                                  }),
            7);
}

TEST(Timeline, GivesEachWorkerAnInterval) {
  const Timeline timeline{5, 3};
  ASSERT_EQ(timeline.workers().size(), 5U);
  EXPECT_EQ(timeline.dropped(), 0U);
  EXPECT_EQ(timeline.dropped_from(), std::nullopt);
}

TEST(Activity, HasTheNameOfItsEnumerator) {
  EXPECT_EQ(name_of(Activity::start), "start");
  EXPECT_EQ(name_of(Activity::delay), "delay");
  EXPECT_EQ(name_of(Activity::wait), "wait");
}

}  // namespace
}  // namespace starling::actor
