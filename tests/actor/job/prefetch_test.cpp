// Tests that idle threads of the pool prefetch the data of the next step.
#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <vector>

#include "starling/actor/train/train.hpp"
#include "starling/models/table.hpp"

namespace starling::actor {
namespace {

using Samples = std::vector<std::uint32_t>;

/// Records the prefetches and the reads of the data, in order.
struct AccessLog {
  enum class Kind { prefetched, read };
  struct Entry {
    Kind kind;
    Samples samples;
  };
  std::mutex mutex;
  std::vector<Entry> entries;

  void note(Kind kind, models::Batch batch) {
    const std::lock_guard lock{mutex};
    entries.push_back({kind, {batch.begin(), batch.end()}});
  }
};

/// Data that log each prefetch, and then throw if `throws`.
struct LoggedData {
  AccessLog& log;
  bool throws = false;

  [[nodiscard]] std::size_t size() const { return 64; }
  void prefetch(models::Batch batch) const {
    log.note(AccessLog::Kind::prefetched, batch);
    if (throws) throw std::runtime_error{"no disk"};
  }
};

/// A model that logs which samples it reads.
struct ReadingModel {
  using Scalar = float;
  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "w", .shape = {3}}};
  }
  void initialise(std::span<float> w, Random&) const { std::ranges::fill(w, 0.0F); }
  double gradient(std::span<const float>, const LoggedData& data, models::Batch batch,
                  std::span<float> g, models::ComputeContext&) const {
    data.log.note(AccessLog::Kind::read, batch);
    g[0] = 1;
    return 1;
  }
  models::Metrics evaluate(std::span<const float>, const LoggedData&, models::Batch,
                           models::ComputeContext&) const {
    return {{"loss", 1}};
  }
};

/// Returns options of a job with a delay of 5 ms in each step, during which the pool's thread is
/// idle.
TrainOptions slow_job() {
  TrainOptions options;
  options.batch = 8;
  options.job.workers = 1;
  options.job.barrier = {barrier::Asp{}};
  options.job.steps = 20;
  options.job.delay = parse_distribution("const:5ms").value();
  return options;
}

static_assert(models::PrefetchableData<LoggedData> && models::PrefetchableData<models::Table>);

TEST(Prefetch, PrefetchesTheSamplesOfTheNextStep) {
  AccessLog log;
  const auto outcome = train(ReadingModel{}, LoggedData{log}, nullptr, slow_job());
  ASSERT_TRUE(outcome) << outcome.error().message;
  std::size_t read = 0;
  std::size_t prefetched = 0;
  for (std::size_t i = 0; i < log.entries.size(); ++i) {
    if (log.entries[i].kind == AccessLog::Kind::read) {
      ++read;
      continue;
    }
    ++prefetched;
    if (i + 1 == log.entries.size()) break;  // the job ended before the next step
    EXPECT_EQ(log.entries[i + 1].kind, AccessLog::Kind::read);
    EXPECT_EQ(log.entries[i + 1].samples, log.entries[i].samples);
  }
  EXPECT_EQ(read, 20);
  EXPECT_GE(prefetched, 10);
}

TEST(Prefetch, FailureDoesNotFailTheJob) {
  AccessLog log;
  const auto outcome =
      train(ReadingModel{}, LoggedData{.log = log, .throws = true}, nullptr, slow_job());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->end, Outcome::End::completed);
}

}  // namespace
}  // namespace starling::actor
