/// The progress that an engine reports of its jobs, and how a job is stopped.
#include <atomic>
#include <map>
#include <stdexcept>

#include "tests/actor/flow/flow_cases.hpp"

namespace starling::flow {
namespace {

/// The last progress of a stage, and its operations.
struct LastProgress {
  StageProgress progress;
  std::string operations;
  Part parts = 0;
};

/// Runs `job(engine)` and returns the last progress of each stage of each job.
template <class Job>
std::map<std::pair<std::uint64_t, std::uint32_t>, LastProgress> progress_of(
    std::size_t threads, std::size_t memory_bytes, const Job& job) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, LastProgress> last;
  const auto keep = [&last](const StageProgress& progress) {
    LastProgress& known = last[{progress.action, progress.stage}];
    EXPECT_GE(progress.parts_done, known.progress.parts_done);
    known = {progress, progress.description->operations, progress.description->parts};
  };
  const auto engine =
      MapReduce::make(
          {.threads = threads, .parts = 4, .memory_bytes = memory_bytes, .on_progress = keep})
          .value();
  job(engine);
  std::uint64_t spilled = 0;
  for (const auto& [id, stage] : last) spilled += stage.progress.counts.bytes_spilled;
  EXPECT_EQ(spilled, engine.spilled_bytes());
  return last;
}

TEST(Progress, CountsPartsRecordsAndBytesOfEachStage) {
  for (const std::size_t threads : {1U, 3U, 8U}) {
    const auto stages = progress_of(threads, std::size_t{1} << 20U, [](const MapReduce& engine) {
      const auto pairs = engine.generate(20'000, [](std::uint64_t i) {
        return std::pair{mix(i), std::string(100, 'x')};
      });
      EXPECT_EQ(pairs.group_by_key(3).count().value(), 20'000U);
      EXPECT_EQ(pairs.count().value(), 20'000U);
    });
    ASSERT_EQ(stages.size(), 3U);
    const LastProgress& shuffle = stages.at({0, 0});
    EXPECT_EQ(shuffle.operations, "generator | group_by_key");
    EXPECT_EQ(shuffle.progress.parts_done, 4U);
    EXPECT_EQ(shuffle.progress.counts.records_read, 20'000U);
    EXPECT_EQ(shuffle.progress.counts.records_written, 20'000U);
    EXPECT_GT(shuffle.progress.counts.bytes_written, 20'000U * 100);
    EXPECT_GT(shuffle.progress.counts.bytes_spilled, 1'000'000U);
    const LastProgress& reader = stages.at({0, 1});
    EXPECT_EQ(reader.parts, 3U);
    EXPECT_EQ(reader.progress.parts_done, 3U);
    EXPECT_EQ(reader.progress.counts.records_read, 20'000U);
    EXPECT_EQ(reader.progress.counts.records_written, 0U);
    EXPECT_EQ(stages.at({1, 0}).progress.counts.records_read, 20'000U);
  }
}

TEST(Progress, CountsACombinedKeyOnceForEachTask) {
  const auto stages = progress_of(2, std::size_t{1} << 28U, [](const MapReduce& engine) {
    const auto ones = engine.generate(1000, [](std::uint64_t i) { return std::pair{i % 5, 1}; });
    EXPECT_EQ(ones.reduce_by_key(std::plus<>{}, 2).count().value(), 5U);
  });
  EXPECT_EQ(stages.at({0, 0}).progress.counts.records_written, 4U * 5);
  EXPECT_EQ(stages.at({0, 1}).progress.counts.records_read, 4U * 5);
}

TEST(Progress, LeavesOutFailedAttempts) {
  std::atomic<int> calls = 0;
  const auto stages = progress_of(1, std::size_t{1} << 28U, [&](const MapReduce& engine) {
    const auto numbers = engine.generate(100, [&calls](std::uint64_t i) {
      if (++calls == 10) throw std::runtime_error{"try again"};
      return i;
    });
    EXPECT_EQ(numbers.count().value(), 100U);
  });
  EXPECT_EQ(stages.at({0, 0}).progress.counts.records_read, 100U);
  EXPECT_EQ(stages.at({0, 0}).progress.parts_done, 4U);
}

TEST(Stop, EndsAJobWithinAPart) {
  std::atomic<std::uint64_t> calls = 0;
  const auto engine =
      MapReduce::make({.threads = 2, .attempts = 1, .is_stopped = [&] { return calls > 10'000; }})
          .value();
  const auto endless = engine.generate(UINT64_MAX, [&calls](std::uint64_t i) {
    ++calls;
    return i;
  });
  EXPECT_EQ(endless.count().error().message, "the job was stopped");
  EXPECT_EQ(endless.key_by([](std::uint64_t i) { return i; }).distinct().count().error().message,
            "the job was stopped");
}

TEST(Stop, EndsAJoinOfOneKey) {
  std::atomic<bool> has_begun = false;
  const auto engine =
      MapReduce::make(
          {.threads = 1, .parts = 2, .attempts = 1, .is_stopped = [&] { return has_begun.load(); }})
          .value();
  const auto ones = engine.generate(30'000, [](std::uint64_t i) { return std::pair{1, i}; });
  const auto pairs = ones.join(ones).map([&has_begun](const auto& pair) {
    has_begun = true;
    return pair.first;
  });
  EXPECT_FALSE(pairs.count()) << "900 million pairs";
}

TEST(Stop, EndsAJobOfSmallParts) {
  std::atomic<std::uint64_t> calls = 0;
  const auto engine =
      MapReduce::make(
          {.threads = 2, .parts = 1000, .attempts = 1, .is_stopped = [&] { return calls > 10; }})
          .value();
  const auto numbers = engine.generate(1000, [&calls](std::uint64_t) { return ++calls; });
  EXPECT_EQ(numbers.count().error().message, "the job was stopped");
  EXPECT_LE(calls, 12U);
}

TEST(Progress, ReportsAnExceptionOfACallback) {
  const auto fail = [](const auto&) { throw std::runtime_error{"disk full"}; };
  const auto error_of = [](MapReduceOptions options) {
    options.parts = 4;
    const auto engine = MapReduce::make(std::move(options)).value();
    const auto counted = engine.generate(1000,
                                         [](std::uint64_t i) {
                                           return std::pair{i % 7, 1};
                                         })
                             .reduce_by_key([](int a, int b) { return a + b; })
                             .count();
    return counted ? "no error" : counted.error().message;
  };
  for (const std::size_t threads : {1U, 4U}) {
    EXPECT_EQ(error_of({.threads = threads, .on_task = fail}), "on_task: disk full");
    EXPECT_EQ(error_of({.threads = threads, .on_progress = fail}), "on_progress: disk full");
  }
}

}  // namespace
}  // namespace starling::flow
