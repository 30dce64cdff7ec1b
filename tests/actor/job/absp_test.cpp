/// Trains under absp in one process, with workers of which one is slow: each sample of an epoch is
/// taken once, and the sums of the workers' gradients are those of the samples.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <memory>

#include "tests/actor/cluster/small_jobs.hpp"

namespace starling::actor {
namespace {

constexpr std::size_t rows = 240;

/// Counts how often each sample is in a gradient that a worker computes. The gradient of a sample
/// is 1 in one of four parameters, so that the parameters show how many samples the updates had.
struct CountingModel {
  using Scalar = double;
  std::shared_ptr<std::array<std::atomic<int>, rows>> counts =
      std::make_shared<std::array<std::atomic<int>, rows>>();

  [[nodiscard]] std::vector<models::Parameter> parameters() const {
    return {{.name = "samples", .shape = {4}}};
  }
  void initialise(std::span<double> w, Random&) const { std::ranges::fill(w, 0.0); }
  double gradient(std::span<const double>, const models::Table&, models::Batch batch,
                  std::span<double> g, models::ComputeContext&) const {
    for (const std::uint32_t sample : batch) {
      ++(*counts)[sample];
      g[sample % 4] -= 1 / static_cast<double>(batch.size());
    }
    return 1;
  }
  [[nodiscard]] models::Metrics evaluate(std::span<const double>, const models::Table&,
                                         models::Batch, models::ComputeContext&) const {
    return {{"loss", 0}};
  }
};

TrainOptions options_for_epochs(double epochs) {
  TrainOptions options;
  options.job.mode = core::Mode::central;
  options.job.barrier = {barrier::Absp{}};
  options.job.workers = 4;
  options.job.delay = parse_distribution("const:10ms").value();
  options.job.stragglers = {parse_straggler("1:4x").value()};
  options.optimizer = models::Sgd{.lr = 1};
  options.batch = 16;
  options.epochs = epochs;
  return options;
}

TEST(AbspJob, TakesEachSampleOnceInAnEpochAlthoughASlowWorkerHandsIn) {
  const CountingModel model;
  const models::Table data = load("linear:d=1,n=240");
  const Outcome outcome = train(model, data, nullptr, options_for_epochs(6)).value();
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  for (std::size_t sample = 0; sample < rows; ++sample)
    EXPECT_EQ((*model.counts)[sample], 6) << "sample " << sample;
  std::uint64_t samples = 0;
  for (const auto& entry : first_ledger_entries(outcome.model, 4)) samples += entry.samples;
  EXPECT_EQ(samples, 6 * rows);
  EXPECT_NEAR(outcome.last.data_epoch.value_or(0), 6, 1e-9);
  // The 1,440 samples are 90 whole batches of 16; parts of batches are more.
  EXPECT_GT(outcome.last.updates, 92U);
}

/// Each round adds the mean gradient of its samples, whose elements add up to 1.
TEST(AbspJob, AddsTheMeanOverAllSamplesOfARound) {
  const CountingModel model;
  const models::Table data = load("linear:d=1,n=240");
  TrainOptions options = options_for_epochs(3);
  const Outcome outcome = train(model, data, nullptr, options).value();
  ASSERT_EQ(outcome.end, Outcome::End::completed) << outcome.error;
  double sum = 0;
  for (const double element : parameters_of(model, options, outcome)) sum += element;
  EXPECT_NEAR(sum, static_cast<double>(outcome.model.front().round), 1e-9);
}

TEST(AbspJob, StopsInTheMiddleOfADelay) {
  const CountingModel model;
  const models::Table data = load("linear:d=1,n=240");
  TrainOptions options = options_for_epochs(1000);
  options.job.delay = parse_distribution("const:10min").value();
  options.job.time = std::chrono::milliseconds{20};
  const Outcome outcome = train(model, data, nullptr, options).value();
  EXPECT_EQ(outcome.end, Outcome::End::reached) << outcome.error;
}

TEST(AbspJob, RefusesDynamicBatchesAndModesWithoutACoordinator) {
  const CountingModel model;
  const models::Table data = load("linear:d=1,n=240");
  TrainOptions options = options_for_epochs(1);
  options.dynamic_batches = true;
  EXPECT_EQ(train(model, data, nullptr, options).error().message.substr(0, 45),
            "barrier absp: hands in a part of a batch, but");
  options.dynamic_batches = false;
  options.job.mode = core::Mode::peer;
  EXPECT_EQ(train(model, data, nullptr, options).error().message.substr(0, 58),
            "barrier absp needs to see every worker's step, which no on");
}

}  // namespace
}  // namespace starling::actor
