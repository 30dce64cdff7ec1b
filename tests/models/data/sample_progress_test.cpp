/// models::SampleOrder for workers whose progress in a deal is a number of samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::models {
namespace {

using Samples = std::vector<std::uint32_t>;

TEST(SampleProgress, GoesOnWithTheSamplesThatWereNotTaken) {
  const SampleOrder order{23, 2, 4, 7};
  Samples whole;
  Samples batch;
  for (std::uint64_t step = 0; step < order.steps_per_epoch(); ++step) {
    order.batch(1, step, batch);
    whole.insert(whole.end(), batch.begin(), batch.end());
  }
  order.batch_after(1, 5, batch);
  EXPECT_EQ(batch, (Samples{whole.begin() + 5, whole.begin() + 9}));
  Samples next;
  order.batch(1, order.steps_per_epoch(), next);
  order.batch_after(1, 11, batch);
  EXPECT_EQ(batch, next) << "the second epoch";
  order.batch_after(1, 9, batch);
  EXPECT_EQ(batch, (Samples{whole[9], whole[10], next[0], next[1]})) << "from both epochs";
  EXPECT_EQ(order.size_after(1, 9), 4U);
}

TEST(SampleProgress, EndsAWorkerAfterItsPartOfTheEpochs) {
  const SampleOrder order{23, 2, 4, 7};
  EXPECT_EQ(order.samples_until(0, 2), 24U);
  EXPECT_EQ(order.samples_until(1, 2), 22U);
  EXPECT_EQ(order.samples_until(1, 0), 0U);
  EXPECT_DOUBLE_EQ(order.epochs_after_samples(1, 33), 3);
  EXPECT_EQ(order.samples_of_first_epoch(0), 12U);
}

TEST(SampleProgress, CountsTheEpochsOfTheRestToo) {
  const std::vector<FormerDeal> former{{0, 5, 15, {{1}, {2}}}};  // 15 of 60 samples
  const SampleOrder order{60, 3, 5, 7, true, former};
  EXPECT_DOUBLE_EQ(order.epochs_after_samples(0, 0), 0.25);
  EXPECT_DOUBLE_EQ(order.epochs_after_samples(0, 5), 0.5);
  EXPECT_DOUBLE_EQ(order.epochs_after_samples(0, 15), 1);
  EXPECT_DOUBLE_EQ(order.epochs_after_samples(0, 15 + 30), 2.5);
}

TEST(SampleProgress, IsDividedAmongTheWorkersOfAJobThatResumes) {
  const std::vector<std::uint64_t> expected{6, 6, 6, 5};
  for (std::uint64_t worker = 0; worker < 4; ++worker)
    EXPECT_EQ(samples_at_resume(23, 4, worker), expected[worker]);
}

TEST(SampleProgress, HasNothingForAWorkerWithoutSamples) {
  const SampleOrder order{2, 3, 4, 7};
  EXPECT_EQ(order.size_after(2, 0), 0U);
  EXPECT_EQ(order.samples_until(2, 5), 0U);
  EXPECT_DOUBLE_EQ(order.epochs_after_samples(2, 0), 0);
}

TEST(SampleProgress, TakesEverySampleOnceWhileWorkersHandInAndChange) {
  Random random{3};
  for (int trial = 0; trial < 500; ++trial) {
    const std::uint64_t n = 1 + random.below(120);
    std::vector<FormerDeal> former;
    std::vector<DealtSample> all;
    std::vector<DealtSample> dealt;
    for (std::uint64_t changes = random.below(6);; --changes) {
      const std::uint64_t workers = 1 + random.below(6);
      const std::uint64_t batch = 1 + random.below(9);
      ASSERT_TRUE(check_deals(former, n)) << check_deals(former, n).error().message;
      const SampleOrder order{n, workers, batch, 7, true, former};
      FormerDeal deal{.batch = batch, .taken = std::vector<Taken>(workers)};
      for (std::uint64_t w = 0; w < workers; ++w) {
        // The last deal takes what is left; others end at any time, in the middle of an epoch too.
        const std::uint64_t until =
            changes == 0 ? order.samples_until(w, static_cast<double>(order.first_epoch()))
                         : random.below(3 * order.samples_of_first_epoch(w) + 1);
        std::uint64_t& taken = deal.taken[w].samples;
        while (taken < until) {
          order.batch_after(w, taken, dealt);
          ASSERT_EQ(dealt.size(), order.size_after(w, taken));
          if (dealt.empty()) break;
          dealt.resize(std::min(1 + random.below(dealt.size()), until - taken));
          taken += dealt.size();
          all.insert(all.end(), dealt.begin(), dealt.end());
        }
      }
      if (changes == 0) {
        std::ranges::sort(all);
        ASSERT_EQ(std::ranges::adjacent_find(all), all.end()) << "trial " << trial;
        ASSERT_EQ(all.size(), n * order.first_epoch()) << "trial " << trial;
        break;
      }
      ASSERT_EQ(all.size() + order.left(deal.taken).size(), n * order.first_new_epoch(deal.taken))
          << "trial " << trial;
      ASSERT_EQ(order.count_left(deal.taken), order.left(deal.taken).size());
      former = deals_after(former, order, deal);
    }
  }
}

}  // namespace
}  // namespace starling::models
