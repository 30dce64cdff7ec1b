// Runs the kernel bodies of losses and updates on the host and compares them with the CPU's losses,
// optimisers and clipping. Needs no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "starling/models/cuda/kernels/loss.hpp"
#include "starling/models/cuda/kernels/update.hpp"
#include "starling/models/loss.hpp"
#include "starling/models/optimizer/clip.hpp"
#include "tests/models/cuda/layers.hpp"
#include "tests/models/cuda/near.hpp"

namespace starling::models::cuda {
namespace {

TEST(Losses, EqualTheCpuWithTheirDerivatives) {
  const std::size_t rows = 20;
  for (const std::size_t classes : {2U, 10U, 100U}) {
    const auto z = normals(rows * classes, classes);
    std::vector<float> labels(rows);
    for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<float>(i * 7 % classes);
    std::vector<float> expected = z;
    const Accumulator sums = SoftmaxLoss::apply<float>(expected, labels, 0.05F);
    std::vector<float> derivatives(z.size());
    Accumulator actual;
    for (std::size_t i = 0; i < rows; ++i) {
      const RowLoss row = softmax_row(z.data() + i * classes, static_cast<Index>(classes),
                                      static_cast<Index>(labels[i]), 0.05F,
                                      derivatives.data() + i * classes, OneLane{});
      actual += {row.loss, row.metric_value};
    }
    EXPECT_NEAR(actual.loss, sums.loss, 1e-5 * sums.loss);
    EXPECT_EQ(actual.metric_value, sums.metric_value);
    expect_near(derivatives, expected, 1e-6F);
  }
}

TEST(Losses, PredictTheFirstOfEqualScores) {
  const std::vector<float> z(5, 0.5F);
  EXPECT_EQ(softmax_row(z.data(), 5, 0, 1, nullptr, OneLane{}).metric_value, 1);
  EXPECT_EQ(softmax_row(z.data(), 5, 3, 1, nullptr, OneLane{}).metric_value, 0);
}

TEST(Losses, CountTheSamePredictionAsTheCpuIfTheFirstScoreIsNan) {
  const std::vector<float> z{std::nanf(""), 1, 2};
  ASSERT_EQ(SoftmaxLoss::decide<float>(z), 0);
  EXPECT_EQ(softmax_row(z.data(), 3, 2, 1, nullptr, OneLane{}).metric_value, 0);
  EXPECT_EQ(softmax_row(z.data(), 3, 0, 1, nullptr, OneLane{}).metric_value, 1);
}

TEST(Losses, AreFiniteForDistantScores) {
  const std::vector<float> z{-3e4F, 3e4F};
  std::vector<float> derivatives(2);
  const RowLoss row = softmax_row(z.data(), 2, 0, 1, derivatives.data(), OneLane{});
  EXPECT_NEAR(row.loss, 6e4, 0.01);
  EXPECT_EQ(derivatives, (std::vector<float>{-1, 1}));
}

TEST(Losses, OfRealTargetsAndPairsEqualTheCpu) {
  const auto z = normals(12, 4);
  const auto labels = normals(12, 5);
  std::vector<float> expected = z;
  const Accumulator squared = SquaredLoss::apply<float>(expected, labels, 0.5F);
  Accumulator actual;
  std::vector<float> derivatives(12);
  for (std::size_t i = 0; i < 12; ++i) {
    const RowLoss row = squared_row(z[i], labels[i], 0.5F, &derivatives[i]);
    actual += {row.loss, row.metric_value};
  }
  EXPECT_NEAR(actual.loss, squared.loss, 1e-5);
  EXPECT_NEAR(actual.metric_value, squared.metric_value, 1e-5);
  expect_near(derivatives, expected, 1e-6F);

  // Three pairs: one labelled alike, one labelled different, and one of equal vectors that is
  // labelled different.
  std::vector<float> pairs(z.begin(), z.end());
  std::copy_n(pairs.begin() + 8, 2, pairs.begin() + 10);
  const std::vector<float> pair_labels{0, 1, 1};
  expected = pairs;
  const Accumulator contrastive = ContrastiveLoss::apply<float>(expected, pair_labels, 0.5F, 3.0F);
  actual = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const RowLoss row = contrastive_row(&pairs[4 * i], 2, pair_labels[i] == 0, 3, 0.5F,
                                        &derivatives[4 * i], OneLane{});
    actual += {row.loss, row.metric_value};
  }
  EXPECT_NEAR(actual.loss, contrastive.loss, 1e-5);
  EXPECT_EQ(actual.metric_value, contrastive.metric_value);
  expect_near(derivatives, expected, 1e-6F);
}

TEST(Losses, OfLargeErrorsAreFinite) {
  const std::array<float, 1> label{-1e20F};
  std::array<float, 1> z{1e20F};
  const RowLoss row = squared_row(z[0], label[0], 1, nullptr);
  const Accumulator expected = SquaredLoss::apply<float>(z, label, 1.0F);
  EXPECT_EQ(row.loss, expected.loss);
  EXPECT_EQ(row.metric_value, expected.metric_value);
  EXPECT_TRUE(std::isfinite(row.metric_value));
}

class Updates : public testing::TestWithParam<std::string> {};

TEST_P(Updates, EqualTheCpuStepByStep) {
  const Optimizer optimizer = parse_optimizer(GetParam()).value();
  const std::size_t size = 50;
  std::vector<float> expected = normals(size, 1);
  std::vector<float> w = expected;
  std::vector<float> expected_state(slot_count(optimizer) * size);
  std::vector<float> state(expected_state.size());
  for (std::uint64_t t = 1; t <= 20; ++t) {
    const auto g = normals(size, 10 + t);
    const ApplyOptions options{.rate_scale = 0.5, .l2 = 0.01, .t = t};
    apply<float>(optimizer, expected, g, expected_state, options);
    const StagedUpdate staged = stage(optimizer, options);
    std::visit(
        [&]<class O>(const O&) {
          const Update<OptimizerUpdate<O>> update{staged, g.data(), w.data(), state.data(), size};
          for (std::uint64_t i = 0; i < size; ++i) update({.size = size}, i, {});
        },
        optimizer);
  }
  expect_near(w, expected, 1e-5F);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Updates,
                         testing::Values("sgd:lr=0.1", "sgd:lr=0.1,momentum=0.9",
                                         "sgd:lr=0.1,momentum=0.9,nesterov", "adagrad:lr=0.1",
                                         "adam:lr=0.01", "adam:lr=0.01,beta1=0.5,beta2=0.9"));

TEST(Updates, DecayOnlySomeParametersAndAddChangesOfUntrainedOnes) {
  const StagedUpdate staged = stage(Sgd{.lr = 0.5}, {.l2 = 0.1});
  const float g = 1;
  std::vector<float> w(3, 2.0F);
  const auto step = [&](std::size_t at, const Segment& segment) {
    Update<OptimizerUpdate<Sgd>>{staged, &g, &w[at], nullptr, 1}(segment, 0, {});
  };
  step(0, {.size = 1});
  step(1, {.size = 1, .decays = false});
  step(2, {.size = 1, .trained = false});
  EXPECT_FLOAT_EQ(w[0], 2 - 0.5F * (1 + 0.2F));
  EXPECT_FLOAT_EQ(w[1], 1.5F);
  EXPECT_FLOAT_EQ(w[2], 3);
}

TEST(Updates, ClipLikeTheCpu) {
  const auto g = normals(40, 3);
  double squares = 0;
  for (const float value : g) squares += static_cast<double>(value) * static_cast<double>(value);
  for (const std::string text : {"value:0.5", "norm:1", "norm:100", "none"}) {
    const Clip clip = parse_clip(text).value();
    std::vector<float> expected = g;
    apply<float>(clip, expected);
    const ClipBounds bounds = clip_bounds(clip);
    const Clipping clipping{norm_factor(squares, bounds.norm), bounds.value};
    std::vector<float> actual = g;
    for (float& value : actual) value = clip_element(value, clipping);
    expect_near(actual, expected, 1e-6F);
  }
  EXPECT_EQ(norm_factor(INFINITY, 1), 1) << "an infinite norm must not scale";
  EXPECT_EQ(norm_factor(NAN, 1), 1);
  EXPECT_TRUE(std::isnan(clip_element(std::nanf(""), {.limit = 1})));
}

}  // namespace
}  // namespace starling::models::cuda
