#include "starling/models/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace starling::models {
namespace {

template <class T>
class Losses : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Losses, Precisions);

TYPED_TEST(Losses, MatchHandComputedValues) {
  using T = TypeParam;
  std::vector<T> z{3, -1};
  Accumulator sums = SquaredLoss::apply<T>(z, std::vector<float>{1, 0}, T{2});
  EXPECT_DOUBLE_EQ(sums.loss, 2.5);
  EXPECT_DOUBLE_EQ(sums.metric_value, 5);
  EXPECT_EQ(z, (std::vector<T>{4, -2}));

  z = {0, 0};
  sums = LogLoss::apply<T>(z, std::vector<float>{1, 0}, T{1});
  EXPECT_NEAR(sums.loss, 2 * std::log(2), 1e-6);
  EXPECT_DOUBLE_EQ(sums.metric_value, 1);
  EXPECT_EQ(z, (std::vector<T>{T{-0.5}, T{0.5}}));

  z = {0, 0, 0, 0};
  sums = SoftmaxLoss::apply<T>(z, std::vector<float>{2}, T{1});
  EXPECT_NEAR(sums.loss, std::log(4), 1e-6);
  EXPECT_NEAR(static_cast<double>(z[0]), 0.25, 1e-6);
  EXPECT_NEAR(static_cast<double>(z[2]), -0.75, 1e-6);

  z = {T{0.5}, -2, 3};
  sums = HingeLoss::apply<T>(z, std::vector<float>{0}, T{1});
  EXPECT_DOUBLE_EQ(sums.loss, 0.5 + 0 + 4);
  EXPECT_DOUBLE_EQ(sums.metric_value, 0);
  EXPECT_EQ(z, (std::vector<T>{-1, 0, 1}));

  z = {T{0.5}, T{0.5}};
  sums = HingeLoss::apply<T>(z, std::vector<float>{1, 0}, T{1});
  EXPECT_DOUBLE_EQ(sums.loss, 0.5 + 1.5);
  EXPECT_DOUBLE_EQ(sums.metric_value, 1);
  EXPECT_EQ(z, (std::vector<T>{-1, 1}));
}

TYPED_TEST(Losses, ExtremeLogitsGiveTheirLimits) {
  using T = TypeParam;
  std::vector<T> z{1e4, -1e4};
  Accumulator sums = LogLoss::apply<T>(z, std::vector<float>{0, 1}, T{1});
  EXPECT_DOUBLE_EQ(sums.loss, 2e4);
  EXPECT_EQ(z, (std::vector<T>{1, -1}));

  z = {1e4, -1e4};
  sums = LogLoss::apply<T>(z, std::vector<float>{1, 0}, T{1});
  EXPECT_DOUBLE_EQ(sums.loss, 0);
  EXPECT_EQ(z, (std::vector<T>{0, 0}));

  z = {1e4, -1e4, 0};
  sums = SoftmaxLoss::apply<T>(z, std::vector<float>{1}, T{1});
  EXPECT_DOUBLE_EQ(sums.loss, 2e4);
  EXPECT_NEAR(static_cast<double>(z[0]), 1, 1e-6);
  EXPECT_NEAR(static_cast<double>(z[1]), -1, 1e-6);
  EXPECT_NEAR(static_cast<double>(z[2]), 0, 1e-6);
}

TYPED_TEST(Losses, AreNanIfAScoreIs) {
  using T = TypeParam;
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  for (const float label : {0.0F, 1.0F}) {
    const std::vector<float> labels{label};
    std::vector<T> z{nan};
    EXPECT_TRUE(std::isnan(SquaredLoss::apply<T>(z, labels, T{1}).loss));
    z = {nan};
    EXPECT_TRUE(std::isnan(LogLoss::apply<T>(z, labels, T{1}).loss));
    z = {nan};
    EXPECT_TRUE(std::isnan(HingeLoss::apply<T>(z, labels, T{1}).loss));
    z = {1, nan, 3};
    EXPECT_TRUE(std::isnan(HingeLoss::apply<T>(z, labels, T{1}).loss));
    z = {1, nan, 3};
    EXPECT_TRUE(std::isnan(SoftmaxLoss::apply<T>(z, labels, T{1}).loss));
    z = {1, nan};
    EXPECT_TRUE(std::isnan(ContrastiveLoss::apply<T>(z, labels, T{1}, T{1}).loss));
  }
}

TEST(Loss, LabelsBeyondTheClassesEndTheProgram) {
  std::vector<double> z{0, 0, 0};
  EXPECT_DEATH(SoftmaxLoss::apply<double>(z, std::vector<float>{3}, 1.0), "broken invariant");
  EXPECT_DEATH(SoftmaxLoss::apply<double>(z, std::vector<float>{-1}, 1.0), "broken invariant");
}

}  // namespace
}  // namespace starling::models
