// Tests the data that a node keeps about its jobs: their names, their recent speed and loss, their
// records, and their log lines.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "starling/actor/cluster/job_history.hpp"
#include "starling/actor/cluster/job_name.hpp"
#include "starling/actor/cluster/job_slots.hpp"
#include "starling/actor/cluster/log_buffer.hpp"
#include "starling/actor/cluster/recent_figures.hpp"
#include "starling/base/utc.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

/// Returns the record of an ended job.
wire::JobRecord record(wire::JobId job, wire::JobState state, bool is_reported_by_client = false) {
  wire::JobRecord job_record;
  job_record.job = job;
  job_record.name = "job-" + std::to_string(job);
  job_record.summary.state = state;
  job_record.is_reported_by_client = is_reported_by_client;
  return job_record;
}

TEST(JobName, IsOneWordOfLettersDigitsAndFewSigns) {
  for (const char* name : {"a", "7", "softmax-digits-1", "A.b_c-9"})
    EXPECT_TRUE(check_job_name(name)) << name;
  const std::string longest(job_name_max, 'x');
  EXPECT_TRUE(check_job_name(longest));
  for (const std::string& name :
       {std::string{}, std::string{"-a"}, std::string{".a"}, std::string{"two words"},
        std::string{"a/b"}, longest + "x", std::string{"na\xc3\xafve"}, std::string{"a\n"}}) {
    const auto checked = check_job_name(name);
    ASSERT_FALSE(checked) << name;
    EXPECT_NE(checked.error().message.find("valid: letters, digits"), std::string::npos);
  }
}

TEST(JobName, IsTheJobIdIfTheSettingIsMissingOrInvalid) {
  EXPECT_EQ(name_of({{"model", "x"}, {"name", "run-1"}}, 42), "run-1");
  EXPECT_EQ(name_of({}, 42), "42");
  EXPECT_EQ(name_of({{"name", "two words"}}, 42), "42");
}

TEST(JobSummary, NamesTheExchangeUnlessItIsTheDefault) {
  wire::JobSettings settings{{"model", "softmax"}, {"mode", "peer"}, {"exchange", "broadcast"}};
  EXPECT_EQ(summary_of(settings), "softmax, peer, broadcast");
  settings.back().second = "owners";
  EXPECT_EQ(summary_of(settings), "softmax, peer");
}

TEST(JobSlots, RefuseTheNameOfAnotherJob) {
  JobSlots slots{JobLimits{}};
  ASSERT_TRUE(slots.reserve(1, {{"name", "x"}, {"model", "softmax"}}, "alice", 0s));
  ASSERT_TRUE(slots.reserve(2, {}, "alice", 0s));
  EXPECT_TRUE(slots.check_name("x", 1));
  EXPECT_TRUE(slots.check_name("y", 3));
  EXPECT_TRUE(slots.check_name("", 3));
  const auto refused = slots.check_name("x", 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "has a job called 'x' already (softmax); try: another --name");
  slots.release(1);
  EXPECT_TRUE(slots.check_name("x", 3));
}

TEST(RecentFigures, CoverTheLastFiveSeconds) {
  RecentFigures figures;
  EXPECT_EQ(figures.updates_per_s(), 0);
  EXPECT_EQ(figures.loss_count(), 0U);
  // Makes 10 updates a second with loss 4 for 20 s, and then 100 a second with loss 1 for 10 s.
  std::uint64_t updates = 0;
  double loss_sum = 0;
  core::Time now{};
  const auto run = [&](int seconds, std::uint64_t rate, double loss) {
    for (int i = 0; i < seconds; ++i) {
      now += 1s;
      updates += rate;
      loss_sum += loss * static_cast<double>(rate);
      figures.add(now, {updates, updates, loss_sum});
    }
  };
  run(20, 10, 4);
  EXPECT_DOUBLE_EQ(figures.updates_per_s(), 10);
  EXPECT_DOUBLE_EQ(figures.loss(), 4);
  run(10, 100, 1);
  EXPECT_DOUBLE_EQ(figures.updates_per_s(), 100);
  EXPECT_DOUBLE_EQ(figures.loss(), 1);
  // Without new updates, the rate falls to 0 and the loss stays.
  run(10, 0, 0);
  EXPECT_DOUBLE_EQ(figures.updates_per_s(), 0);
  EXPECT_DOUBLE_EQ(figures.loss(), 1);
}

TEST(RecentFigures, DiscardEarlierReadingsWhenUpdatesFall) {
  RecentFigures figures;
  figures.add(0s, {0, 0, 0});
  figures.add(1s, {100, 100, 50});
  figures.add(2s, {60, 60, 30});
  EXPECT_EQ(figures.updates_per_s(), 0);
  figures.add(3s, {80, 80, 50});
  EXPECT_DOUBLE_EQ(figures.updates_per_s(), 20);
  EXPECT_DOUBLE_EQ(figures.loss(), 1);
}

TEST(RecentFigures, TakeTheMeanOfTheUpdatesThatHaveALoss) {
  RecentFigures figures;
  figures.add(0s, {0, 0, 0});
  figures.add(1s, {8, 5, 10});
  EXPECT_DOUBLE_EQ(figures.updates_per_s(), 8);
  EXPECT_DOUBLE_EQ(figures.loss(), 2);
  EXPECT_EQ(figures.loss_count(), 5U);
}

TEST(JobHistory, PrefersTheOutcomeThatAClientReports) {
  JobHistory history;
  history.add(record(1, wire::JobState::stopped), 0s);
  history.add(record(1, wire::JobState::failed), 1s);
  EXPECT_EQ(history.records().jobs.at(0).summary.state, wire::JobState::stopped);
  history.set_outcome(1, {wire::JobState::done, "", {{"test_accuracy", 0.9}}}, 2s);
  ASSERT_EQ(history.records().jobs.size(), 1U);
  EXPECT_EQ(history.records().jobs[0].summary.state, wire::JobState::done);
  EXPECT_EQ(history.records().jobs[0].summary.figures.size(), 1U);
  EXPECT_EQ(history.records().jobs[0].name, "job-1");
  history.set_outcome(1, {wire::JobState::failed}, 3s);
  EXPECT_EQ(history.records().jobs[0].summary.state, wire::JobState::done);
  history.set_outcome(7, {wire::JobState::done}, 3s);
  EXPECT_EQ(history.records().jobs.size(), 1U);
}

TEST(JobHistory, ListsShortRecordsInTheOrderInWhichTheJobsEnded) {
  JobHistory history;
  for (const auto& [job, ended_at_ms] : {std::pair{1U, 30}, {2U, 10}, {3U, 20}}) {
    wire::JobRecord ended = record(job, wire::JobState::done);
    ended.ended_at_ms = ended_at_ms;
    ended.name = ended.description = ended.client = std::string(100'000, 'x');
    ended.summary.figures = {{std::string(100'000, 'x'), 1}};
    history.add(std::move(ended), 0s);
  }
  std::vector<wire::JobId> jobs;
  for (const wire::JobRecord& ended : history.records().jobs) {
    jobs.push_back(ended.job);
    for (const std::string* text : {&ended.name, &ended.description, &ended.client})
      EXPECT_EQ(text->size(), 500U);
    EXPECT_EQ(ended.summary.figures.at(0).first.size(), 500U);
  }
  EXPECT_EQ(jobs, (std::vector<wire::JobId>{2, 3, 1}));
}

TEST(JobHistory, KeepsRecordsForADayUpToAMaximum) {
  JobHistory history;
  history.add(record(1, wire::JobState::done), 0s);
  history.add(record(2, wire::JobState::done), 1h);
  history.expire(24h + 1s);
  ASSERT_EQ(history.records().jobs.size(), 1U);
  EXPECT_EQ(history.records().jobs[0].job, 2U);
  for (wire::JobId job = 10; job < 10 + 2 * JobHistory::jobs_max; ++job) {
    auto job_record = record(job, wire::JobState::done, true);
    job_record.summary.why = std::string(100'000, 'x');
    job_record.summary.figures.resize(10'000, {"figure", 1.0});
    history.add(std::move(job_record), 2h + std::chrono::seconds{job});
  }
  const auto all = history.records();
  ASSERT_EQ(all.jobs.size(), JobHistory::jobs_max);
  for (const wire::JobRecord& job_record : all.jobs) {
    EXPECT_GE(job_record.job, 10 + JobHistory::jobs_max);
    EXPECT_LE(job_record.summary.why.size(), 500U);
    EXPECT_LE(job_record.summary.figures.size(), 32U);
  }
}

TEST(LogBuffer, KeepsTheJobAndTheTimeOfEachLine) {
  std::vector<std::string> printed;
  LogBuffer log{[&](const std::string& line) { printed.push_back(line); }};
  const auto before = utc_now_us();
  log.add("joined");
  log.add("begins", "run-1");
  const auto after = utc_now_us();
  EXPECT_EQ(printed, (std::vector<std::string>{"joined", "job run-1: begins"}));
  const auto lines = log.read(0).lines;
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].job, "");
  EXPECT_EQ(lines[1].job, "run-1");
  EXPECT_EQ(lines[1].text, "job run-1: begins");
  EXPECT_LE(before, lines[0].time_us);
  EXPECT_LE(lines[0].time_us, lines[1].time_us);
  EXPECT_LE(lines[1].time_us, after);
}

/// Clients choose some names in the lines. A program that follows the log asks for `next`.
TEST(LogBuffer, KeepsTheLatestLinesPrintableAndShort) {
  LogBuffer log{{}};
  for (int i = 0; i < 1010; ++i) log.add(std::to_string(i));
  auto part = log.read(0);
  EXPECT_EQ(part.from, 10U);
  EXPECT_EQ(part.lines.size(), 200U);
  EXPECT_EQ(part.lines.at(0).text, "10");
  EXPECT_EQ(part.next, 210U);
  part = log.read(1005);
  ASSERT_EQ(part.lines.size(), 5U);
  EXPECT_EQ(part.lines[0].text, "1005");
  EXPECT_EQ(part.next, 1010U);
  EXPECT_TRUE(log.read(5000).lines.empty());
  EXPECT_EQ(log.read(5000).next, 1010U);
  log.add("\x1b[2J" + std::string(1000, 'x'), "a\nb");
  const std::string text = log.read(1010).lines.at(0).text;
  EXPECT_TRUE(text.starts_with("job a\\x0ab: \\x1b[2Jxx")) << text;
  EXPECT_EQ(text.size(), 500U);
}

TEST(Utc, IsWrittenToTheMillisecond) {
  EXPECT_EQ(print_utc(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(print_utc(951'782'400'000'000 + 42'999), "2000-02-29T00:00:00.042Z");
  EXPECT_EQ(print_utc(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(print_utc(INT64_MAX), "0000-00-00T00:00:00.000Z");
  EXPECT_EQ(print_utc(INT64_MIN), "0000-00-00T00:00:00.000Z");
}

}  // namespace
}  // namespace starling::actor
