#include "starling/tools/registry/evaluation_metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace starling::program {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(ClassificationMetrics, CountLabelsByPredictions) {
  const auto metrics = classification_metrics(3, Floats{0, 0, 1, 1, 1}, Floats{0, 1, 1, 1, 0});
  EXPECT_EQ(metrics.confusion,
            (std::vector<std::vector<std::uint64_t>>{{1, 1, 0}, {1, 2, 0}, {0, 0, 0}}));
  EXPECT_DOUBLE_EQ(*metrics.precision[0], 0.5);
  EXPECT_DOUBLE_EQ(*metrics.recall[1], 2.0 / 3);
  EXPECT_FALSE(metrics.precision[2]) << "no sample was predicted as class 2";
  EXPECT_FALSE(metrics.recall[2]) << "no sample is of class 2";
}

TEST(RegressionMetrics, AreMeansOverTheSamples) {
  const auto metrics = regression_metrics(Doubles{1, 2, 6}, Doubles{2, 2, 4});
  EXPECT_DOUBLE_EQ(metrics.mae, 1);
  EXPECT_DOUBLE_EQ(metrics.rmse, std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(*metrics.r2, 1 - 5.0 / 14);
  EXPECT_FALSE(regression_metrics(Doubles{3, 3}, Doubles{1, 2}).r2) << "targets are all the same";
}

TEST(AreaUnderCurve, IsTheShareOfPairsInTheRightOrder) {
  EXPECT_DOUBLE_EQ(*area_under_curve(Floats{0, 0, 1, 1}, Floats{1, 2, 3, 4}), 1);
  EXPECT_DOUBLE_EQ(*area_under_curve(Floats{1, 1, 0, 0}, Floats{1, 2, 3, 4}), 0);
  EXPECT_DOUBLE_EQ(*area_under_curve(Floats{0, 1, 0, 1}, Floats{7, 7, 7, 7}), 0.5);
  // Three of the pairs (.35, .1), (.35, .4), (.8, .1) and (.8, .4) are in the right order.
  EXPECT_DOUBLE_EQ(*area_under_curve(Floats{0, 0, 1, 1}, Floats{0.1F, 0.4F, 0.35F, 0.8F}), 0.75);
  EXPECT_FALSE(area_under_curve(Floats{1, 1}, Floats{1, 2}));
  EXPECT_FALSE(area_under_curve(Floats{0, 1}, Floats{1, NAN})) << "a diverged model has none";
}

TEST(Probabilities, FollowTheLinkOfTheScores) {
  const auto two = probabilities({1, models::Link::logistic, {0, std::log(3.0F)}});
  ASSERT_TRUE(two);
  EXPECT_NEAR((*two)[0], 0.5, 1e-7);
  EXPECT_NEAR((*two)[3], 0.75, 1e-7);
  const auto three = probabilities({3, models::Link::softmax, {1000, 1000, -1000}});
  ASSERT_TRUE(three);
  EXPECT_NEAR((*three)[1], 0.5, 1e-7) << "large scores do not overflow";
  EXPECT_FALSE(probabilities({1, models::Link::none, {1}}));
}

}  // namespace
}  // namespace starling::program
