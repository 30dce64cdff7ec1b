#include "starling/models/optimizer/gradient_compression.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/model_data.hpp"

namespace starling::models {
namespace {

TEST(Threshold, SendsElementsAboveTheThresholdAndKeepsTheRest) {
  const Threshold options{.threshold = 0.5F};
  const std::vector<float> g{0.4F, -0.6F, 0.5F, 2.0F};
  std::vector<float> residual(4);
  const SparseGradient first = compress(options, g, residual);
  EXPECT_EQ(first, (SparseGradient{{1, 3}, {-0.6F, 2.0F}}));
  EXPECT_EQ(residual, (std::vector<float>{0.4F, 0, 0.5F, 0}));
  // An element below the threshold is sent once its sum exceeds the threshold.
  const SparseGradient second = compress(options, std::vector<float>{0.4F, 0, 0, 0}, residual);
  EXPECT_EQ(second, (SparseGradient{{0}, {0.8F}}));
}

TEST(Threshold, SendsSignsAndKeepsTheRemainder) {
  const Threshold options{.threshold = 0.5F, .form = Threshold::Form::signs};
  std::vector<float> residual(3);
  const SparseGradient sent = compress(options, std::vector<float>{0.75F, -2.0F, 0.25F}, residual);
  EXPECT_EQ(sent, (SparseGradient{{0, 1U | 1U << 31U}, {}}));
  EXPECT_EQ(residual, (std::vector<float>{0.25F, -1.5F, 0.25F}));
  std::vector<float> g(3);
  expand(options, sent, g);
  EXPECT_EQ(g, (std::vector<float>{0.5F, -0.5F, 0}));
}

TEST(Threshold, SentValuesAndResidualAddUpToTheGradients) {
  for (const auto form : {Threshold::Form::values, Threshold::Form::signs}) {
    const Threshold options{.threshold = 1.5F, .form = form};
    Random random{7};
    std::vector<float> sum(1000);
    std::vector<float> received(1000);
    std::vector<float> residual(1000);
    std::size_t sent_elements = 0;
    for (int round = 0; round < 30; ++round) {
      std::vector<float> g(1000);
      for (float& value : g) value = static_cast<float>(random.normal());
      for (std::size_t i = 0; i < g.size(); ++i) sum[i] += g[i];
      const SparseGradient sent = compress(options, g, residual);
      EXPECT_TRUE(std::ranges::is_sorted(
          sent.indices, {}, [](std::uint32_t i) { return i & ~(std::uint32_t{1} << 31U); }));
      expand(options, sent, received);
      sent_elements += sent.indices.size();
    }
    for (std::size_t i = 0; i < sum.size(); ++i)
      ASSERT_NEAR(received[i] + residual[i], sum[i], 1e-4) << i;
    EXPECT_LT(sent_elements, 30'000U);
    EXPECT_GT(sent_elements, 1000U);
  }
}

TEST(Threshold, KeepsNanInTheResidual) {
  std::vector<float> residual(2);
  const SparseGradient sent =
      compress({.threshold = 0}, std::vector<float>{std::nanf(""), 1}, residual);
  EXPECT_EQ(sent.indices, (std::vector<std::uint32_t>{1}));
  EXPECT_TRUE(std::isnan(residual[0]));
}

/// Subtracting a sent infinity from the residual would leave NaN, which stays in the residual.
TEST(Threshold, LeavesNoResidualOfASentInfinity) {
  std::vector<float> residual(2);
  const std::vector<float> g{INFINITY, -INFINITY};
  EXPECT_EQ(compress({.threshold = 1}, g, residual), (SparseGradient{{0, 1}, g}));
  EXPECT_EQ(residual, (std::vector<float>{0, 0}));
}

TEST(Threshold, SignsRequireAThresholdAboveZero) {
  EXPECT_TRUE(is_valid({.threshold = 0}));
  EXPECT_TRUE(is_valid({.threshold = 1, .form = Threshold::Form::signs}));
  EXPECT_FALSE(is_valid({.threshold = 0, .form = Threshold::Form::signs}));
  EXPECT_FALSE(is_valid({.threshold = -1}));
  EXPECT_FALSE(is_valid({.threshold = std::nanf("")}));
}

}  // namespace
}  // namespace starling::models
