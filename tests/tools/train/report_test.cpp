#include "starling/tools/train/report.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace starling::program {
namespace {

using Json = nlohmann::json;

ResolvedJob resolved_job() {
  ResolvedJob job;
  job.model = "softmax";
  job.data = "digits";
  job.options.job.workers = 2;
  job.options.job.steps = 100;
  job.steps_per_epoch = 10;
  return job;
}

actor::Progress progress() {
  actor::Progress figures;
  figures.elapsed = std::chrono::seconds{2};
  figures.updates = 100;
  figures.spread = {48, 50, 52};
  figures.max_lag = 4;
  figures.waiting_share = 0.125;
  figures.loss = 0.5;
  return figures;
}

Json json_of(const ResolvedJob& job) {
  const actor::Outcome outcome;
  return Json::parse(summary_json({.job = job, .outcome = outcome}));
}

std::string table_of(const ResolvedJob& job) {
  const actor::Outcome outcome;
  return summary_table({.job = job, .outcome = outcome});
}

TEST(ProgressLine, ShowsMeasuredFiguresAndTheRemainingTime) {
  EXPECT_EQ(progress_line(resolved_job(), progress()),
            "2.0 s  epoch 5.0  50 updates/s  steps 48-50-52  waiting 12 %  loss 0.5  ETA 2.0 s");
  actor::Progress tested = progress();
  tested.test = {{"loss", 1}, {"accuracy", 0.97}};
  tested.evaluated_at = 40;
  EXPECT_NE(progress_line(resolved_job(), tested).find("  accuracy 97.0 %"), std::string::npos);
}

TEST(ProgressLine, NamesAwaitedNodesInsteadOfAnUnknownRemainingTime) {
  const std::string line = progress_line(resolved_job(), progress(), "b, c");
  EXPECT_TRUE(line.ends_with("loss 0.5  waits for b, c")) << line;
  EXPECT_TRUE(progress_line(resolved_job(), progress(), "").ends_with("loss 0.5"));
  ResolvedJob timed = resolved_job();
  timed.options.job.time = std::chrono::seconds{10};
  EXPECT_TRUE(progress_line(timed, progress(), "b").ends_with("waits for b  ETA 8.0 s"));
}

TEST(ProgressLine, IgnoresLostWorkersInTheRemainingTime) {
  ResolvedJob job = resolved_job();
  job.id = "1";
  actor::Progress half = progress();
  half.updates = 60;
  half.mean_step = 50;
  EXPECT_TRUE(progress_line(job, half).ends_with("ETA 2.0 s")) << progress_line(job, half);
}

TEST(ProgressLine, CountsWorkersThatAreBehindInTheRemainingTimeOnNodes) {
  ResolvedJob job = resolved_job();
  job.id = "1";
  actor::Progress one_has_ended = progress();
  one_has_ended.spread = {0, 100, 100};
  one_has_ended.mean_step = 50;
  const std::string line = progress_line(job, one_has_ended);
  EXPECT_TRUE(line.ends_with("ETA 2.0 s")) << line;
}

TEST(ProgressLine, LeavesOutAnUnknownLossAndRemainingTime) {
  ResolvedJob job = resolved_job();
  job.options.job.steps = barrier::unlimited;
  const std::string line = progress_line(job, actor::Progress{});
  EXPECT_EQ(line.find("loss"), std::string::npos);
  EXPECT_EQ(line.find("ETA"), std::string::npos);
}

TEST(Metrics, PrintWholeStepsAndUpdatesAsWholeNumbers) {
  ResolvedJob job = resolved_job();
  actor::Progress figures = progress();
  EXPECT_EQ(Json::parse(progress_json(job, figures))["step"].dump(), "50");
  figures.updates = 101;
  EXPECT_EQ(Json::parse(progress_json(job, figures))["step"].dump(), "50.5");
  figures.evaluated_at = 40;
  const Json evaluation = Json::parse(evaluation_json(job, figures));
  EXPECT_EQ(evaluation["step"].dump(), "40");
  EXPECT_EQ(evaluation["updates"].dump(), "80");
  EXPECT_EQ(evaluation["epoch"], 4.0);
}

TEST(Metrics, FollowTheWorkersOfAClusterThatComeAndGo) {
  ResolvedJob job = resolved_job();
  job.id = "1";
  actor::Progress figures = progress();
  figures.updates = 80;  // of one worker at step 50, and of another that has died at step 30
  figures.mean_step = 50;
  EXPECT_EQ(Json::parse(progress_json(job, figures))["step"], 50);
  figures.evaluated_at = 50;
  figures.evaluated_epoch = 4.5;
  figures.evaluated_updates = 80;
  const Json evaluation = Json::parse(evaluation_json(job, figures));
  EXPECT_EQ(evaluation["updates"], 80);
  EXPECT_EQ(evaluation["epoch"], 4.5);
}

TEST(Summary, TableNamesTheShardsIfThereAreAny) {
  ResolvedJob job = resolved_job();
  EXPECT_NE(table_of(job).find("  mode        peer, 2 workers\n"), std::string::npos);
  job.options.job.mode = core::Mode::central;
  EXPECT_NE(table_of(job).find("  mode        central, 2 workers, 1 shard\n"), std::string::npos);
  EXPECT_EQ(json_of(job)["shards"], 1);
  job.id = "1";  // nodes decide how many servers there are
  EXPECT_NE(table_of(job).find("  mode        central, 2 workers\n"), std::string::npos);
  EXPECT_FALSE(json_of(job).contains("shards"));
}

TEST(ProgressLine, LeavesOutSpeedAndLossBeforeTheFirstUpdateOfARun) {
  ResolvedJob job = resolved_job();
  job.options.job.steps = barrier::unlimited;
  job.updates_before = job.steps_before = 100;
  actor::Progress resumed = progress();
  resumed.test = {{"accuracy", 0.97}};
  resumed.evaluated_at = 50;
  EXPECT_EQ(progress_line(job, resumed), "2.0 s  epoch 5.0  steps 48-50-52");
  const Json json = Json::parse(progress_json(job, resumed));
  for (const char* absent : {"updates_per_s", "waiting_share", "loss"})
    EXPECT_FALSE(json.contains(absent)) << absent;
  EXPECT_EQ(json["updates"], 100);
  resumed.updates = 104;
  EXPECT_EQ(progress_line(job, resumed),
            "2.0 s  epoch 5.2  2 updates/s  steps 48-50-52  waiting 12 %  loss 0.5");
  resumed.evaluated_at = 51;
  EXPECT_NE(progress_line(job, resumed).find("accuracy 97.0 %"), std::string::npos);
}

TEST(Summary, CountsUpdatesOfTheWholeJobAndMeasuresThisRun) {
  ResolvedJob job = resolved_job();
  job.updates_before = job.steps_before = 60;
  actor::Outcome outcome;
  outcome.last = progress();
  const Json json = Json::parse(summary_json({.job = job, .outcome = outcome}));
  EXPECT_EQ(json["updates"], 100);
  EXPECT_EQ(json["updates_per_s"], 20.0);
  EXPECT_EQ(json["end"], "completed");
  EXPECT_FALSE(json.contains("test_accuracy"));
  EXPECT_FALSE(json.contains("normalised_error"));
  EXPECT_EQ(json["draws"], 0);
  const std::string table = summary_table({.job = job, .outcome = outcome});
  EXPECT_NE(table.find("  updates     100, 60 of them before, 20/s\n"), std::string::npos) << table;
  job.options.job.barrier = barrier::Barrier{barrier::Bsp{}};
  EXPECT_FALSE(Json::parse(summary_json({.job = job, .outcome = outcome})).contains("draws"));
}

/// Six workers went on at step 4 after four workers that had made 7 steps each.
TEST(Summary, CountsTheUpdatesOfFormerWorkers) {
  ResolvedJob job = resolved_job();
  job.updates_before = 28;
  job.steps_before = 24;
  actor::Outcome outcome;
  outcome.last = progress();
  outcome.last.updates = 48;
  const Json json = Json::parse(summary_json({.job = job, .outcome = outcome}));
  EXPECT_EQ(json["updates"], 52);
  EXPECT_EQ(json["updates_per_s"], 12.0);
  const std::string table = summary_table({.job = job, .outcome = outcome});
  EXPECT_NE(table.find("  updates     52, 28 of them before, 12/s\n"), std::string::npos) << table;
}

TEST(Summary, NamesDelayAndStragglersIfThereAreAny) {
  ResolvedJob job = resolved_job();
  EXPECT_FALSE(json_of(job).contains("delay"));
  EXPECT_FALSE(json_of(job).contains("straggler"));
  for (const char* absent : {"delay", "straggler"})
    EXPECT_EQ(table_of(job).find(absent), std::string::npos) << table_of(job);
  job.options.job.delay = parse_distribution("exp:20ms").value();
  job.options.job.stragglers = {parse_straggler("1:4x").value(), parse_straggler("50%:2x").value()};
  EXPECT_EQ(json_of(job)["delay"], "exp:20ms");
  EXPECT_EQ(json_of(job)["straggler"], (Json{"1:4x", "50%:2x"}));
  EXPECT_NE(table_of(job).find("\n  delay       exp:20ms\n  straggler   1:4x, 50%:2x\n"),
            std::string::npos)
      << table_of(job);
}

TEST(Summary, NamesTheExchangeInTheTableUnlessItIsTheDefault) {
  ResolvedJob job = resolved_job();
  EXPECT_EQ(json_of(job)["exchange"], "owners");
  EXPECT_EQ(table_of(job).find("exchange"), std::string::npos) << table_of(job);
  job.options.job.exchange = "broadcast";
  EXPECT_EQ(json_of(job)["exchange"], "broadcast");
  EXPECT_NE(table_of(job).find("\n  exchange    broadcast\n"), std::string::npos) << table_of(job);
}

TEST(Summary, SaysHowManyReadsTheCacheAnswered) {
  ResolvedJob job = resolved_job();
  EXPECT_FALSE(json_of(job).contains("cache"));
  EXPECT_FALSE(json_of(job).contains("pulls"));
  EXPECT_EQ(table_of(job).find("reads"), std::string::npos) << table_of(job);
  job.options.job.cache = true;
  EXPECT_EQ(json_of(job)["cache"], true);
  EXPECT_EQ(json_of(job)["pulls"], 0);
  actor::Outcome outcome;
  outcome.last.reads = {.ranges = 400, .pulled = 100};
  const std::string table = summary_table({.job = job, .outcome = outcome});
  EXPECT_NE(table.find("\n  reads       75.0 % of the ranges from the cache\n"), std::string::npos)
      << table;
}

TEST(Summary, NamesTheRecheckOnlyIfTheBarrierDrawsWorkers) {
  ResolvedJob job = resolved_job();
  EXPECT_EQ(json_of(job)["recheck"], "notify+interval:auto");
  EXPECT_NE(table_of(job).find("pssp:s=4,beta=2, recheck notify+interval:auto\n"),
            std::string::npos);
  job.options.job.mode = core::Mode::central;
  EXPECT_EQ(json_of(job)["recheck"], "arrival");
  job.options.job.recheck = barrier::parse_recheck("interval:5ms").value();
  EXPECT_EQ(json_of(job)["recheck"], "interval:5ms");
  for (const char* other : {"bsp", "ssp:s=4", "asp", "pbsp:beta=0", "pssp:s=inf,beta=2"}) {
    job.options.job.barrier = barrier::parse(other).value();
    EXPECT_FALSE(json_of(job).contains("recheck")) << other;
    EXPECT_EQ(table_of(job).find("recheck"), std::string::npos) << table_of(job);
  }
}

TEST(Summary, IsValidJsonWhateverTheFigures) {
  const ResolvedJob job = resolved_job();
  actor::Outcome outcome;
  outcome.last = progress();
  outcome.last.train = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  const std::string text =
      summary_json({.job = job, .outcome = outcome, .error = "a \"quote\" and \xff"});
  const Json json = Json::parse(text);
  EXPECT_TRUE(json["train_loss"].is_null());
  EXPECT_EQ(json["end"], "failed");
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(Summary, NamesAClustersJobAndItsLostWorkers) {
  ResolvedJob job = resolved_job();
  EXPECT_FALSE(json_of(job).contains("workers_lost"));
  EXPECT_TRUE(json_of(job).contains("max_lag"));
  job.id = "18446744073709551615";
  const actor::Outcome outcome;
  EndedJob ended{.job = job, .outcome = outcome};
  ended.workers = {.finished = 3, .left = 1, .died = 2};
  const Json json = Json::parse(summary_json(ended));
  EXPECT_EQ(json["job"], job.id);
  EXPECT_EQ(json["workers_finished"], 3);
  EXPECT_EQ(json["workers_left"], 1);
  EXPECT_EQ(json["workers_died"], 2);
  EXPECT_EQ(json["workers_lost"], 3);
  EXPECT_NE(summary_table(ended).find("\n  workers     3 finished, 1 left, 2 died\n"),
            std::string::npos);
  EXPECT_NE(table_of(job).find("\n  workers     0 finished\n"), std::string::npos);
  EXPECT_FALSE(json.contains("max_lag")) << json;
  EXPECT_FALSE(json.contains("device")) << "only the nodes know it";
  EXPECT_EQ(table_of(job).find("apart"), std::string::npos);
  EXPECT_FALSE(Json::parse(progress_json(job, progress())).contains("max_lag"));
}

TEST(Summary, SaysAtWhichStepAJobWasStopped) {
  ResolvedJob job = resolved_job();
  actor::Outcome outcome;
  outcome.last = progress();
  outcome.end = actor::Outcome::End::stopped;
  EXPECT_NE(summary_table({.job = job, .outcome = outcome})
                .find("stopped after 2.0 s, at step 50 of 100\n"),
            std::string::npos);
  job.options.job.steps = barrier::unlimited;
  EXPECT_NE(summary_table({.job = job, .outcome = outcome}).find("stopped after 2.0 s\n"),
            std::string::npos);
}

TEST(Summary, TableLeavesOutFiguresThatWereNotMeasured) {
  const ResolvedJob job = resolved_job();
  actor::Outcome outcome;
  outcome.last = progress();
  const std::string table = summary_table({.job = job, .outcome = outcome});
  EXPECT_NE(table.find("min 48, median 50, max 52; at most 4 apart\n"), std::string::npos) << table;
  for (const char* absent : {"test", "train ", "draws", "saved", "truth"})
    EXPECT_EQ(table.find(std::string{"\n  "} + absent), std::string::npos) << table;
}

}  // namespace
}  // namespace starling::program
