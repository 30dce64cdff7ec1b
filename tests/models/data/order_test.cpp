#include "starling/models/sample_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace starling::models {
namespace {

using Samples = std::vector<std::uint32_t>;

Samples batch(const SampleOrder& order, std::uint64_t worker, std::uint64_t step) {
  Samples out{99};
  order.batch(worker, step, out);
  return out;
}

/// Returns the samples of all workers' batches at `step`, ascending.
Samples samples_at(const SampleOrder& order, std::uint64_t workers, std::uint64_t step) {
  Samples all;
  for (std::uint64_t w = 0; w < workers; ++w) {
    const Samples one = batch(order, w, step);
    all.insert(all.end(), one.begin(), one.end());
  }
  std::ranges::sort(all);
  return all;
}

/// The parameters are the numbers of samples and workers, and the batch size.
class SampleOrderMatrix
    : public testing::TestWithParam<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> {};

TEST_P(SampleOrderMatrix, GivesEverySampleOnceAnEpoch) {
  const auto [n, workers, size] = GetParam();
  const std::uint64_t share = (n + workers - 1) / workers;
  for (const bool shuffle : {true, false}) {
    const SampleOrder order{n, workers, size, 7, shuffle};
    ASSERT_EQ(order.steps_per_epoch(), (share + size - 1) / size);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      Samples seen;
      for (std::uint64_t k = 0; k < order.steps_per_epoch(); ++k) {
        const Samples of_step = samples_at(order, workers, epoch * order.steps_per_epoch() + k);
        seen.insert(seen.end(), of_step.begin(), of_step.end());
      }
      std::ranges::sort(seen);
      Samples all(n);
      std::iota(all.begin(), all.end(), 0U);
      EXPECT_EQ(seen, all) << "epoch " << epoch;
    }
  }
}

TEST_P(SampleOrderMatrix, WorkersTogetherGetTheSamplesOfASingleWorker) {
  const auto [n, workers, size] = GetParam();
  for (const bool shuffle : {true, false}) {
    const SampleOrder many{n, workers, size, 7, shuffle};
    const SampleOrder lone{n, 1, workers * size, 7, shuffle};
    ASSERT_EQ(many.steps_per_epoch(), lone.steps_per_epoch());
    for (std::uint64_t step = 0; step < 2 * many.steps_per_epoch(); ++step)
      EXPECT_EQ(samples_at(many, workers, step), samples_at(lone, 1, step)) << "step " << step;
  }
}

TEST_P(SampleOrderMatrix, NeverGivesMoreThanABatch) {
  const auto [n, workers, size] = GetParam();
  const SampleOrder order{n, workers, size, 7};
  for (std::uint64_t k = 0; k < order.steps_per_epoch(); ++k)
    for (std::uint64_t w = 0; w < workers; ++w) EXPECT_LE(batch(order, w, k).size(), size);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SampleOrderMatrix,
                         testing::Combine(testing::Values(1, 7, 100, 1001),
                                          testing::Values(1, 3, 8, 130),
                                          testing::Values(1, 5, 64, 5000)));

TEST(SampleOrder, IsAFunctionOfItsSeed) {
  const SampleOrder one{1000, 4, 10, 1};
  const SampleOrder same{1000, 4, 10, 1};
  const SampleOrder other{1000, 4, 10, 2};
  EXPECT_EQ(batch(one, 3, 60), batch(same, 3, 60));
  EXPECT_NE(batch(one, 3, 60), batch(other, 3, 60));
}

TEST(SampleOrder, DrawsEveryEpochAnew) {
  const SampleOrder order{1000, 4, 10, 1};
  EXPECT_NE(batch(order, 0, 0), batch(order, 0, order.steps_per_epoch()));
}

TEST(SampleOrder, CountsUpWithoutShuffling) {
  const SampleOrder order{10, 2, 3, 1, false};
  EXPECT_EQ(batch(order, 0, 0), (Samples{0, 2, 4}));
  EXPECT_EQ(batch(order, 1, 0), (Samples{1, 3, 5}));
  EXPECT_EQ(batch(order, 0, 1), (Samples{6, 8}));
  EXPECT_EQ(batch(order, 0, 2), (Samples{0, 2, 4}));
}

TEST(SampleOrder, LeavesTheLastBatchEmptyIfNoSamplesAreLeft) {
  const SampleOrder order{5, 2, 1, 1};
  EXPECT_EQ(order.steps_per_epoch(), 3U);
  EXPECT_EQ(batch(order, 0, 2).size(), 1U);
  EXPECT_TRUE(batch(order, 1, 2).empty());
}

/// A chi-square test: over many epochs, each sample is the first one equally often.
TEST(SampleOrder, PutsEverySampleFirstEquallyOften) {
  constexpr std::uint64_t n = 20;
  constexpr std::uint64_t epochs = 20'000;
  const SampleOrder order{n, 1, n, 3};
  std::vector<double> times_first(n, 0);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) ++times_first[batch(order, 0, epoch)[0]];
  const double expected = double{epochs} / double{n};
  double chi2 = 0;
  for (const double count : times_first) chi2 += (count - expected) * (count - expected) / expected;
  // The bound is the 0.9999 quantile of the chi-square distribution with 19 degrees of freedom.
  EXPECT_LT(chi2, 50.8);
}

TEST(SampleOrder, AllowsMoreWorkersThanSamples) {
  const SampleOrder order{3, std::uint64_t{1} << 40U, std::uint64_t{1} << 40U, 1};
  EXPECT_EQ(order.steps_per_epoch(), 1U);
  EXPECT_EQ(batch(order, 2, 0).size(), 1U);
  EXPECT_TRUE(batch(order, 3, 0).empty());
}

}  // namespace
}  // namespace starling::models
