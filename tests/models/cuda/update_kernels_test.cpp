// The bodies of the device's kernels of losses and updates, run on the host, against the CPU's own
// losses, optimisers and clipping. No device is needed.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Losses, AreTheCpusWithTheirDerivatives) {
  const std::size_t rows = 20;
  for (const std::size_t classes : {2U, 10U, 100U}) {
    const auto z = normals(rows * classes, classes);
    std::vector<float> labels(rows);
    for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<float>(i * 7 % classes);
    std::vector<float> wanted = z;
    const Accumulator sums = SoftmaxLoss::apply<float>(wanted, labels, 0.05F);
    std::vector<float> slopes(z.size());
    Accumulator seen;
    for (std::size_t i = 0; i < rows; ++i) {
      const RowLoss row =
          softmax_row(z.data() + i * classes, static_cast<Index>(classes),
                      static_cast<Index>(labels[i]), 0.05F, slopes.data() + i * classes, OneLane{});
      seen += {static_cast<double>(row.loss), static_cast<double>(row.merit)};
    }
    EXPECT_NEAR(seen.loss, sums.loss, 1e-5 * sums.loss);
    EXPECT_EQ(seen.merit, sums.merit);
    expect_near(slopes, wanted, 1e-6F);
  }
}

TEST(Losses, OfEqualScoresTheFirstIsPredicted) {
  const std::vector<float> z(5, 0.5F);
  EXPECT_EQ(softmax_row(z.data(), 5, 0, 1, nullptr, OneLane{}).merit, 1);
  EXPECT_EQ(softmax_row(z.data(), 5, 3, 1, nullptr, OneLane{}).merit, 0);
}

TEST(Losses, OfScoresFarApartAreFinite) {
  const std::vector<float> z{-3e4F, 3e4F};
  std::vector<float> slopes(2);
  const RowLoss row = softmax_row(z.data(), 2, 0, 1, slopes.data(), OneLane{});
  EXPECT_FLOAT_EQ(row.loss, 6e4F);
  EXPECT_EQ(slopes, (std::vector<float>{-1, 1}));
}

TEST(Losses, OfRealTargetsAndOfPairsAreTheCpus) {
  const auto z = normals(12, 4);
  const auto labels = normals(12, 5);
  std::vector<float> wanted = z;
  const Accumulator squared = SquaredLoss::apply<float>(wanted, labels, 0.5F);
  Accumulator seen;
  std::vector<float> slopes(12);
  for (std::size_t i = 0; i < 12; ++i) {
    const RowLoss row = squared_row(z[i], labels[i], 0.5F, &slopes[i]);
    seen += {static_cast<double>(row.loss), static_cast<double>(row.merit)};
  }
  EXPECT_NEAR(seen.loss, squared.loss, 1e-5);
  EXPECT_NEAR(seen.merit, squared.merit, 1e-5);
  expect_near(slopes, wanted, 1e-6F);

  // Three pairs of two: one alike, one not, one of equal vectors that should not be.
  std::vector<float> pairs(z.begin(), z.end());
  std::copy_n(pairs.begin() + 8, 2, pairs.begin() + 10);
  const std::vector<float> kinds{0, 1, 1};
  wanted = pairs;
  const Accumulator contrastive = ContrastiveLoss::apply<float>(wanted, kinds, 0.5F, 3.0F);
  seen = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const RowLoss row =
        contrastive_row(&pairs[4 * i], 2, kinds[i] == 0, 3, 0.5F, &slopes[4 * i], OneLane{});
    seen += {static_cast<double>(row.loss), static_cast<double>(row.merit)};
  }
  EXPECT_NEAR(seen.loss, contrastive.loss, 1e-5);
  EXPECT_EQ(seen.merit, contrastive.merit);
  expect_near(slopes, wanted, 1e-6F);
}

class Updates : public testing::TestWithParam<std::string> {};

TEST_P(Updates, AreTheCpusStepByStep) {
  const Optimizer optimizer = parse_optimizer(GetParam()).value();
  const std::size_t size = 50;
  std::vector<float> wanted = normals(size, 1);
  std::vector<float> w = wanted;
  std::vector<float> wanted_state(slots(optimizer) * size);
  std::vector<float> state(wanted_state.size());
  for (std::uint64_t t = 1; t <= 20; ++t) {
    const auto g = normals(size, 10 + t);
    const ApplyOptions options{.rate_scale = 0.5, .l2 = 0.01, .t = t};
    apply<float>(optimizer, wanted, g, wanted_state, options);
    const StagedUpdate staged = stage(optimizer, options);
    std::visit(
        [&]<class O>(const O&) {
          const Update<UpdateBy<O>> update{staged, g.data(), w.data(), state.data(), size};
          for (std::uint64_t i = 0; i < size; ++i) update({.size = size}, i, {});
        },
        optimizer);
  }
  expect_near(w, wanted, 1e-5F);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Updates,
                         testing::Values("sgd:lr=0.1", "sgd:lr=0.1,momentum=0.9",
                                         "sgd:lr=0.1,momentum=0.9,nesterov", "adagrad:lr=0.1",
                                         "adam:lr=0.01", "adam:lr=0.01,beta1=0.5,beta2=0.9"));

TEST(Updates, DecayOnlyWhatDecaysAndAddWhatIsNotTrained) {
  const StagedUpdate staged = stage(Sgd{.lr = 0.5}, {.l2 = 0.1});
  const float g = 1;
  std::vector<float> w(3, 2.0F);
  const auto step = [&](std::size_t at, const Stretch& stretch) {
    Update<UpdateBy<Sgd>>{staged, &g, &w[at], nullptr, 1}(stretch, 0, {});
  };
  step(0, {.size = 1});
  step(1, {.size = 1, .decays = false});
  step(2, {.size = 1, .trained = false});
  EXPECT_FLOAT_EQ(w[0], 2 - 0.5F * (1 + 0.2F));
  EXPECT_FLOAT_EQ(w[1], 1.5F);
  EXPECT_FLOAT_EQ(w[2], 3);
}

TEST(Updates, ClipAsTheCpuDoes) {
  const auto g = normals(40, 3);
  double squares = 0;
  for (const float value : g) squares += static_cast<double>(value) * static_cast<double>(value);
  for (const std::string text : {"value:0.5", "norm:1", "norm:100", "none"}) {
    const Clip clip = parse_clip(text).value();
    std::vector<float> wanted = g;
    apply<float>(clip, wanted);
    const ClipBounds bounds = clip_bounds(clip);
    const Clipping how{norm_factor(squares, bounds.norm), bounds.value};
    std::vector<float> seen = g;
    for (float& value : seen) value = clipped(value, how);
    expect_near(seen, wanted, 1e-6F);
  }
  EXPECT_EQ(norm_factor(INFINITY, 1), 1) << "a norm that is not finite scales nothing";
  EXPECT_EQ(norm_factor(NAN, 1), 1);
  EXPECT_TRUE(std::isnan(clipped(std::nanf(""), {.limit = 1})));
}

}  // namespace
}  // namespace starling::models::cuda
