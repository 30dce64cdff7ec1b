/// models::SampleOrder for workers whose batches have different sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/models/batch_sizes.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::models {
namespace {

using Samples = std::vector<std::uint32_t>;
using Sizes = std::vector<std::uint64_t>;

Samples batch(const SampleOrder& order, std::uint64_t worker, std::uint64_t step) {
  Samples out{99};
  order.batch(worker, step, out);
  return out;
}

Sizes random_sizes(Random& random) {
  std::vector<double> shares(1 + random.below(7));
  for (double& share : shares) share = 1 + static_cast<double>(random.below(30));
  return divide_batch(1 + random.below(40), shares);
}

TEST(SizedOrder, GivesEveryWorkerItsBatchAndEverySampleOnceAnEpoch) {
  Random random{1};
  for (int trial = 0; trial < 500; ++trial) {
    const Sizes sizes = random_sizes(random);
    const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    const std::uint64_t n = 1 + random.below(200);
    const SampleOrder order{n, sizes, 7, random.below(2) == 0};
    ASSERT_EQ(order.steps_per_epoch(), (n + total - 1) / total);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      Samples seen;
      for (std::uint64_t k = 0; k < order.steps_per_epoch(); ++k)
        for (std::uint64_t w = 0; w < sizes.size(); ++w) {
          const Samples one = batch(order, w, epoch * order.steps_per_epoch() + k);
          ASSERT_LE(one.size(), sizes[w]);
          ASSERT_TRUE(one.size() == sizes[w] || (k + 1) * total > n);
          seen.insert(seen.end(), one.begin(), one.end());
        }
      std::ranges::sort(seen);
      Samples all(n);
      std::iota(all.begin(), all.end(), 0U);
      ASSERT_EQ(seen, all) << "trial " << trial << ", epoch " << epoch;
    }
  }
}

TEST(SizedOrder, WorkersTogetherGetTheSamplesOfASingleWorker) {
  const Sizes sizes{147, 146, 146, 73};
  const SampleOrder many{1'300, sizes, 7};
  const SampleOrder lone{1'300, 1, 512, 7};
  for (std::uint64_t step = 0; step < 6; ++step) {
    Samples all;
    for (std::uint64_t w = 0; w < sizes.size(); ++w) {
      const Samples one = batch(many, w, step);
      all.insert(all.end(), one.begin(), one.end());
    }
    EXPECT_EQ(all, batch(lone, 0, step)) << "in this order too";
  }
}

TEST(SizedOrder, DividesAShortSliceInProportion) {
  const SampleOrder order{150, Sizes{60, 20, 20}, 7};
  ASSERT_EQ(order.steps_per_epoch(), 2U);
  EXPECT_EQ(batch(order, 0, 1).size(), 30U);
  EXPECT_EQ(batch(order, 1, 1).size(), 10U);
  EXPECT_EQ(batch(order, 2, 1).size(), 10U);
}

/// Whatever the workers have taken when the sizes or the workers change: when the last ones have
/// taken what was left, each sample of each epoch was taken once.
TEST(SizedOrder, LosesAndRepeatsNothingWhenTheSizesChange) {
  Random random{5};
  for (int trial = 0; trial < 1'000; ++trial) {
    const std::uint64_t n = 1 + random.below(60);
    std::vector<FormerDeal> former;
    std::vector<DealtSample> all;
    std::vector<DealtSample> dealt;
    for (std::uint64_t changes = random.below(6);; --changes) {
      const Sizes sizes = random_sizes(random);
      // Some deals, as those of a checkpoint that was made without sizes, have equal batches.
      const bool is_sized = random.below(4) > 0;
      const std::uint64_t size = 1 + random.below(9);
      ASSERT_TRUE(check_deals(former, n)) << check_deals(former, n).error().message;
      const SampleOrder order = is_sized ? SampleOrder{n, sizes, 7, true, former}
                                         : SampleOrder{n, sizes.size(), size, 7, true, former};
      FormerDeal deal{.batch = is_sized ? 0 : size, .taken = std::vector<Taken>(sizes.size())};
      if (is_sized) deal.sizes = sizes;
      for (std::uint64_t w = 0; w < sizes.size(); ++w) {
        const std::uint64_t steps =
            changes == 0 ? order.leftover_steps()
                         : random.below(3 * order.steps_per_epoch() + order.leftover_steps());
        std::uint64_t samples = 0;
        for (std::uint64_t step = 0; step < steps; ++step) {
          order.batch(w, step, dealt);
          samples += dealt.size();
          all.insert(all.end(), dealt.begin(), dealt.end());
        }
        // Only the number of its samples is known.
        if (random.below(4) > 0)
          deal.taken[w].steps = steps;
        else
          deal.taken[w].samples = samples;
      }
      if (changes == 0) {
        std::ranges::sort(all);
        ASSERT_EQ(std::ranges::adjacent_find(all), all.end()) << "trial " << trial;
        ASSERT_EQ(all.size(), n * order.first_epoch()) << "trial " << trial;
        break;
      }
      const auto left = order.left(deal.taken);
      ASSERT_EQ(all.size() + left.size(), n * order.first_new_epoch(deal.taken))
          << "trial " << trial;
      ASSERT_EQ(order.count_left(deal.taken), left.size());
      former = deals_after(former, order, deal);
    }
  }
}

TEST(SizedOrder, RefusesSizesThatNoJobCanHaveHad) {
  const auto refuses = [](FormerDeal deal) {
    return !check_deals(std::vector<FormerDeal>{std::move(deal)}, 15);
  };
  FormerDeal deal{.taken = {{1}, {2}}, .sizes = {3, 4}};
  EXPECT_FALSE(refuses(deal));
  deal.sizes = {3, 0};
  EXPECT_TRUE(refuses(deal));
  deal.sizes = {3};
  EXPECT_TRUE(refuses(deal)) << "for one worker of two";
  deal.sizes = {UINT32_MAX, 2};
  EXPECT_TRUE(refuses(deal));
  deal.sizes = {3, 4};
  deal.batch = 4;
  EXPECT_TRUE(refuses(deal)) << "two statements of the size";
}

}  // namespace
}  // namespace starling::models
