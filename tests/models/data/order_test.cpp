#include "starling/models/sample_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "starling/base/random.hpp"

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

/// Adds the samples that the workers have taken. Requires: if only a number of samples is known of
/// a worker, it is that of some of its first batches.
void add_taken(const SampleOrder& order, const std::vector<Taken>& taken,
               std::vector<DealtSample>& all) {
  for (std::uint64_t w = 0; w < taken.size(); ++w) {
    std::uint64_t samples = 0;
    std::vector<DealtSample> dealt;
    for (std::uint64_t step = 0; step < taken[w].steps || samples < taken[w].samples; ++step) {
      order.batch(w, step, dealt);
      samples += dealt.size();
      all.insert(all.end(), dealt.begin(), dealt.end());
    }
  }
}

/// Whatever the workers have taken when others take over: when these have taken what was left, each
/// sample of each epoch was taken once.
TEST(SampleOrder, LosesAndRepeatsNothingWhenTheWorkersChange) {
  Random random{5};
  for (int trial = 0; trial < 500; ++trial) {
    const std::uint64_t n = 1 + random.below(60);
    const bool shuffle = random.below(2) == 0;
    std::vector<FormerDeal> former;
    std::vector<DealtSample> all;
    for (std::uint64_t changes = random.below(5);; --changes) {
      const std::uint64_t workers = 1 + random.below(7);
      const std::uint64_t size = 1 + random.below(9);
      ASSERT_TRUE(check_deals(former, n)) << check_deals(former, n).error().message;
      const SampleOrder order{n, workers, size, 7, shuffle, former};
      if (changes == 0) {
        add_taken(order, std::vector<Taken>(workers, {.steps = order.leftover_steps()}), all);
        std::ranges::sort(all);
        ASSERT_EQ(std::ranges::adjacent_find(all), all.end()) << "trial " << trial;
        ASSERT_EQ(all.size(), n * order.first_epoch()) << "trial " << trial;
        break;
      }
      FormerDeal deal{.batch = order.batch_size(), .taken = std::vector<Taken>(workers)};
      for (std::uint64_t w = 0; w < workers; ++w) {
        Taken& taken = deal.taken[w];
        taken.steps = random.below(3 * order.steps_per_epoch() + order.leftover_steps());
        if (random.below(4) > 0) continue;
        // Only the number of its samples is known.
        std::vector<DealtSample> dealt;
        for (std::uint64_t step = 0; step < taken.steps; ++step) {
          order.batch(w, step, dealt);
          taken.samples += dealt.size();
        }
        taken.steps = 0;
      }
      add_taken(order, deal.taken, all);
      const auto left = order.left(deal.taken);
      ASSERT_EQ(all.size() + left.size(), n * order.first_new_epoch(deal.taken));
      ASSERT_EQ(order.count_left(deal.taken), left.size());
      former = deals_after(former, order, deal);
    }
  }
}

TEST(SampleOrder, ForgetsFormerDealsWhenTheirSamplesAreTaken) {
  const std::vector<FormerDeal> former{{0, 5, 15, {{1}, {2}}}};
  const SampleOrder order{60, 3, 5, 7, true, former};
  const std::uint64_t end = order.leftover_steps();
  EXPECT_EQ(deals_after(former, order, {0, 5, 40, {{end}, {end - 1}, {end}}}).size(), 2U);
  const auto later = deals_after(former, order, {0, 5, 60, {{end}, {end}, {end + 1}}});
  EXPECT_EQ(later, (std::vector<FormerDeal>{{1, 5, 60, {{0}, {0}, {1}}}}));
}

TEST(SampleOrder, ForgetsDealsOfWhichNobodyHasTakenAnything) {
  const SampleOrder first{60, 3, 5, 7};
  EXPECT_TRUE(deals_after({}, first, {0, 5, 0, {{}, {}, {}}}).empty());
  const std::vector<FormerDeal> former{{0, 5, 15, {{1}, {2}}}};
  EXPECT_EQ(deals_after(former, SampleOrder{60, 3, 5, 7, true, former}, {0, 5, 0, {{}, {}, {}}}),
            former);
}

TEST(SampleOrder, CountsStepsUntilTheEndOfEpochs) {
  const std::vector<FormerDeal> former{{0, 5, 15, {{1}, {2}}}};  // 15 of 60 samples
  const SampleOrder order{60, 3, 5, 7, true, former};
  EXPECT_EQ(order.leftover_steps(), 3U);
  EXPECT_EQ(order.steps_per_epoch(), 4U);
  EXPECT_EQ(order.first_step(), 1U) << "the second epoch begins at step 4";
  EXPECT_EQ(order.steps_until(0.2), 0U) << "15 samples are more than 0.2 epochs";
  EXPECT_EQ(order.steps_until(0.5), 1U) << "15 of the 45 samples that are left";
  EXPECT_EQ(order.steps_until(1), 3U);
  EXPECT_EQ(order.steps_until(2.5), 3U + 6U);
  EXPECT_EQ((SampleOrder{60, 3, 5, 7}.steps_until(2.5)), 10U);
}

TEST(SampleOrder, CountsTheEpochsAfterSteps) {
  const std::vector<FormerDeal> former{{0, 5, 15, {{1}, {2}}}};  // 15 of 60 samples
  const SampleOrder order{60, 3, 5, 7, true, former};
  EXPECT_DOUBLE_EQ(order.epochs_after(0), 0.25);
  EXPECT_DOUBLE_EQ(order.epochs_after(1), 0.5);
  EXPECT_DOUBLE_EQ(order.epochs_after(3), 1);
  EXPECT_DOUBLE_EQ(order.epochs_after(3 + 6), 2.5);
  EXPECT_DOUBLE_EQ((SampleOrder{60, 3, 5, 7}.epochs_after(10)), 2.5);
}

TEST(SampleOrder, RefusesDealsThatNoJobCanHaveHad) {
  const auto refusal = [](const FormerDeal& deal) {
    const auto valid = check_deals(std::vector{deal}, 60);
    return valid ? "" : valid.error().message;
  };
  EXPECT_EQ(refusal({0, 5, 0, {{600}, {1}}}), "");
  EXPECT_EQ(refusal({0, 0, 0, {{1}}}),
            "samples were dealt to 1 workers in batches of 0; valid: at least 1 of each");
  EXPECT_EQ(refusal({0, 5, 0, {}}),
            "samples were dealt to 0 workers in batches of 5; valid: at least 1 of each");
  const std::uint64_t huge = std::uint64_t{1} << 60U;
  EXPECT_EQ(refusal({0, 5, 0, {{huge}}}),
            "a worker has taken 1152921504606846976 steps or samples, more than any job takes");
  EXPECT_EQ(refusal({0, 5, 0, {{0, huge}}}),
            "a worker has taken 1152921504606846976 steps or samples, more than any job takes");
  EXPECT_EQ(refusal({0, 5, 0, {{601}, {0}}}), "the workers are 101 epochs apart; valid: up to 100");
  EXPECT_EQ(refusal({UINT32_MAX, 5, 0, {{0}}}),
            "a former deal begins with epoch 4294967295; valid: up to 4294967095");
  const std::vector<FormerDeal> gap{{0, 5, 0, {{1}}}, {2, 5, 0, {{1}}}};
  EXPECT_FALSE(check_deals(gap, 60)) << "the second deal begins with epoch 1";
  EXPECT_FALSE(check_deals(std::vector<FormerDeal>(101, {0, 5, 0, {{1}}}), 60));
}

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
