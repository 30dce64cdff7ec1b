// Runs the kernel bodies of layers on the host and compares them with the CPU's layers. Needs no
// device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "starling/models/cuda/kernels/batch_norm.hpp"
#include "starling/models/cuda/kernels/elementwise.hpp"
#include "starling/models/cuda/kernels/embedding.hpp"
#include "starling/models/cuda/kernels/images.hpp"
#include "starling/models/cuda/kernels/philox.hpp"
#include "starling/models/cuda/kernels/rows.hpp"
#include "tests/models/cuda/layers.hpp"
#include "tests/models/cuda/near.hpp"

namespace starling::models::cuda {
namespace {

/// Calls the kernel body for each index below `size`, as the threads of a device do.
template <class Body>
void run(std::size_t size, const Body& body) {
  for (std::size_t i = 0; i < size; ++i) body(static_cast<Index>(i));
}

// The known answers are those of kat_vectors in Random123, the authors' implementation.
TEST(Philox, DrawsThePublishedNumbers) {
  const auto words = [](const Philox& p) { return std::vector<std::uint32_t>(p.word, p.word + 4); };
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(words(philox({{0, 0, 0, 0}}, 0)),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(words(philox({{ones, ones, ones, ones}}, ~std::uint64_t{0})),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Activations, EqualTheCpuForwardAndBackward) {
  for (const std::string name : {"relu", "tanh", "gelu"}) {
    SCOPED_TRACE(name);
    CpuLayer cpu{name, {5, 4, 3}, 7};
    cpu.run();
    std::vector<float> y(cpu.y.size());
    std::vector<float> dx(cpu.x.size());
    const float* x = cpu.x.data();
    const float* dy = cpu.dy.data();
    if (name == "relu") {
      run(y.size(), Relu{x, y.data()});
      run(y.size(), ReluBackward{y.data(), dy, dx.data()});
    } else if (name == "tanh") {
      run(y.size(), Tanh{x, y.data()});
      run(y.size(), TanhBackward{y.data(), dy, dx.data()});
    } else {
      run(y.size(), Gelu{x, y.data()});
      run(y.size(), GeluBackward{x, dy, dx.data()});
    }
    expect_near(y, cpu.y, 2e-6F);
    expect_near(dx, cpu.dx, 2e-6F);
  }
}

TEST(Activations, ReluKeepsNan) {
  const float nan = std::nanf("");
  float y = 0;
  Relu{&nan, &y}(0);
  EXPECT_TRUE(std::isnan(y));
}

TEST(Dropout, DropsItsShareAndUsesTheSameDrawsInBothPasses) {
  const std::size_t size = 40'001;
  const std::vector<float> ones(size, 1.0F);
  std::vector<float> y(size, -1.0F);
  std::vector<float> dx(size, -1.0F);
  const std::uint64_t seed = 3;
  const auto limit = static_cast<std::uint32_t>(0.3 * 0x1p32);
  const Dropout forward{ones.data(), y.data(), static_cast<Index>(size),
                        limit,       1 / 0.7F, {&seed, 2, 0}};
  Dropout backward = forward;
  backward.y = dx.data();
  run((size + 3) / 4, forward);
  run((size + 3) / 4, backward);
  EXPECT_EQ(y, dx);
  const auto dropped = static_cast<double>(std::ranges::count(y, 0.0F));
  // The bound is five standard deviations of the binomial distribution.
  EXPECT_NEAR(dropped, 0.3 * size, 5 * std::sqrt(0.3 * 0.7 * size));
  EXPECT_EQ(std::ranges::count(y, 1 / 0.7F) + std::ranges::count(y, 0.0F),
            static_cast<std::ptrdiff_t>(size));
  // Another layer or another micro-batch draws other numbers.
  for (const Draws& other : {Draws{&seed, 3, 0}, Draws{&seed, 2, 1}}) {
    backward.draws = other;
    run((size + 3) / 4, backward);
    EXPECT_NE(y, dx);
  }
}

Pooling make_pooling(const PoolShape& s) {
  const auto i = [](std::size_t number) { return static_cast<Index>(number); };
  return {i(s.height), i(s.width),   i(s.channels),     i(s.size),
          i(s.stride), i(s.padding), i(s.out_height()), i(s.out_width())};
}

class Pools : public testing::TestWithParam<std::string> {};

TEST_P(Pools, EqualTheCpu) {
  CpuLayer max{"max-pool " + GetParam(), {9, 8, 3}, 4};
  // Rounding makes many values equal; both must choose the same one as the maximum.
  for (float& x : max.x) x = std::round(x);
  max.run();
  const auto shape = std::get<MaxPoolSpecification>(max.layer->specification()).shape;
  std::vector<float> y(max.y.size());
  std::vector<Index> indices(y.size());
  std::vector<float> dx(max.x.size(), -1.0F);
  run(y.size(), MaxPool{make_pooling(shape), max.x.data(), y.data(), indices.data()});
  run(dx.size(), MaxPoolBackward{make_pooling(shape), indices.data(), max.dy.data(), dx.data()});
  EXPECT_EQ(y, max.y);
  expect_near(dx, max.dx, 1e-6F);

  CpuLayer mean{"avg-pool " + GetParam(), {9, 8, 3}, 4};
  mean.run();
  run(y.size(), AvgPool{make_pooling(shape), mean.x.data(), y.data()});
  run(dx.size(), AvgPoolBackward{make_pooling(shape), mean.dy.data(), dx.data()});
  expect_near(y, mean.y, 1e-6F);
  expect_near(dx, mean.dx, 1e-6F);
}

INSTANTIATE_TEST_SUITE_P(Windows, Pools,
                         testing::Values("2", "3", "3 stride=2", "3 stride=1 padding=1",
                                         "3 stride=2 padding=1", "2 stride=3",
                                         "4 stride=1 padding=3", "8 stride=5", "1"));

TEST(Pools, GlobalMeansEqualTheCpu) {
  CpuLayer cpu{"global-avg-pool", {5, 7, 6}, 3};
  cpu.run();
  std::vector<float> y(cpu.y.size());
  std::vector<float> dx(cpu.x.size());
  run(y.size(), GlobalAvgPool{cpu.x.data(), y.data(), 35, 6});
  run(dx.size(), GlobalAvgPoolBackward{cpu.dy.data(), dx.data(), 35, 6});
  expect_near(y, cpu.y, 1e-6F);
  expect_near(dx, cpu.dx, 1e-6F);
}

// The backward pass A' is the transpose of the forward pass A if <A x, dy> = <x, A' dy> for each
// image.
TEST(Augmentation, ReversesTheMoveInTheBackwardPass) {
  for (const Index shift_max : {0U, 1U, 3U}) {
    const std::size_t n = 200;
    const std::size_t size = n * 6 * 5 * 2;
    const auto x = normals(size, 1);
    const auto dy = normals(size, 2);
    std::vector<float> y(size);
    std::vector<float> dx(size);
    const std::uint64_t seed = 11;
    run(size, Augment{x.data(), y.data(), 6, 5, 2, shift_max, false, {&seed, 0, 0}});
    run(size, Augment{dy.data(), dx.data(), 6, 5, 2, shift_max, true, {&seed, 0, 0}});
    for (std::size_t i = 0; i < n; ++i) {
      const auto product = [&](const std::vector<float>& a, const std::vector<float>& b) {
        return std::inner_product(a.begin() + static_cast<std::ptrdiff_t>(i * 60),
                                  a.begin() + static_cast<std::ptrdiff_t>((i + 1) * 60),
                                  b.begin() + static_cast<std::ptrdiff_t>(i * 60), 0.0);
      };
      ASSERT_NEAR(product(y, dy), product(x, dx), 1e-4)
          << "image " << i << ", shift_max " << shift_max;
    }
  }
}

TEST(Augmentation, DrawsEveryShiftEquallyOften) {
  const std::size_t n = 9000;
  // One bright pixel in the middle shows the shift.
  std::vector<float> x(n * 9, 0.0F);
  for (std::size_t i = 0; i < n; ++i) x[i * 9 + 4] = 1;
  std::vector<float> y(x.size());
  const std::uint64_t seed = 5;
  run(y.size(), Augment{x.data(), y.data(), 3, 3, 1, 1, false, {&seed, 4, 0}});
  std::vector<double> counts(9, 0.0);
  for (std::size_t i = 0; i < y.size(); ++i) counts[i % 9] += static_cast<double>(y[i]);
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 1000) * (count - 1000) / 1000;
  // The bound is the 0.9999 quantile of the chi-square distribution with 8 degrees of freedom.
  EXPECT_LT(chi_square, 31.83);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0), n);

  run(y.size(), Augment{x.data(), y.data(), 3, 3, 1, 0, false, {&seed, 4, 0}});
  EXPECT_EQ(x, y) << "mirroring does not move the middle column";
  std::rotate(x.begin(), x.begin() + 1, x.end());
  run(y.size(), Augment{x.data(), y.data(), 3, 3, 1, 0, false, {&seed, 4, 0}});
  double mirrored = 0;
  for (std::size_t i = 0; i < n; ++i) mirrored += static_cast<double>(y[i * 9 + 5]);
  EXPECT_NEAR(mirrored, n / 2.0, 5 * std::sqrt(n / 4.0));
}

TEST(Embedding, AddsTheRowsOfEachIdInBatchOrder) {
  CpuLayer cpu{"embedding 6 width=5", {4}, 9};
  Random random{2};
  // No row contains id 5.
  for (float& id : cpu.x) id = static_cast<float>(random.below(5));
  cpu.run();
  std::vector<float> y(cpu.y.size());
  run(y.size(), GatherRows<float>{cpu.x.data(), cpu.w.data(), y.data(), 5});
  EXPECT_EQ(y, cpu.y);
  std::vector<Index> order(cpu.x.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](Index a, Index b) { return cpu.x[a] < cpu.x[b]; });
  std::vector<float> g(cpu.g.size());
  run(y.size(), EmbedBackward{cpu.x.data(), order.data(), cpu.dy.data(), g.data(),
                              static_cast<Index>(cpu.x.size()), 5});
  EXPECT_EQ(g, cpu.g) << "the order of additions differs from the CPU's";
}

TEST(Rows, AreGatheredAndScatteredBack) {
  const std::vector<float> x{0, 1, 10, 11, 20, 21, 30, 31};
  const std::vector<Index> rows{1, 3};
  std::vector<float> gathered(4);
  run(4, GatherRows<Index>{rows.data(), x.data(), gathered.data(), 2});
  EXPECT_EQ(gathered, (std::vector<float>{10, 11, 30, 31}));
  std::vector<float> back(8, -1);
  run(4, ScatterRows{rows.data(), gathered.data(), back.data(), 2});
  EXPECT_EQ(back, (std::vector<float>{-1, -1, 10, 11, -1, -1, 30, 31}));
}

/// Returns the column sums of each group, computed in double precision.
std::vector<float> column_sums(const Groups& groups, auto term) {
  std::vector<double> sums(std::size_t{groups.count()} * groups.channels);
  for (Index i = 0; i < groups.rows * groups.channels; ++i)
    sums[groups.statistic_of(i)] += static_cast<double>(term(i, groups.statistic_of(i)));
  return {sums.begin(), sums.end()};
}

class BatchNorms : public testing::TestWithParam<std::size_t> {};

/// Compares each group with the CPU's result for a micro-batch of the same size.
TEST_P(BatchNorms, EqualTheCpuGroupByGroup) {
  const std::size_t samples = 10;
  const std::size_t group_samples = GetParam();
  const std::size_t pixels = 6;
  const std::size_t channels = 3;
  CpuLayer cpu{"batch-norm momentum=0.3", {2, 3, 3}, samples};
  const Groups groups{static_cast<Index>(samples * pixels), static_cast<Index>(channels),
                      static_cast<Index>(group_samples * pixels)};

  auto mean = column_sums(groups, [&](Index i, Index) { return cpu.x[i]; });
  run(mean.size(), DivideByRows{groups, mean.data()});
  auto inverse = column_sums(
      groups, [&](Index i, Index s) { return (cpu.x[i] - mean[s]) * (cpu.x[i] - mean[s]); });
  run(inverse.size(), DivideByRows{groups, inverse.data()});
  std::vector<float> a(mean.size());
  std::vector<float> b(mean.size());
  run(mean.size(), PrepareNormalise{static_cast<Index>(channels), cpu.w.data(), mean.data(),
                                    inverse.data(), a.data(), b.data(), 1e-5F});
  std::vector<float> y(cpu.y.size());
  run(y.size(), Normalise{groups, a.data(), b.data(), cpu.x.data(), y.data()});
  auto products =
      column_sums(groups, [&](Index i, Index s) { return cpu.dy[i] * (cpu.x[i] - mean[s]); });
  auto totals = column_sums(groups, [&](Index i, Index) { return cpu.dy[i]; });
  std::vector<float> g(cpu.g.size());
  const float weight = 1.0F / static_cast<float>(samples * pixels);
  run(channels,
      PrepareNormaliseBackward{groups, cpu.w.data(), mean.data(), inverse.data(), products.data(),
                               totals.data(), a.data(), g.data(), 1e-5F, 0.3F, weight});
  std::vector<float> dx(cpu.x.size());
  run(dx.size(), NormaliseBackward{groups, a.data(), products.data(), totals.data(), cpu.x.data(),
                                   cpu.dy.data(), dx.data()});

  std::vector<float> expected_g(cpu.g.size());
  for (std::size_t first = 0; first < samples; first += group_samples) {
    const std::size_t size = std::min(group_samples, samples - first);
    const std::size_t offset = first * pixels * channels;
    const std::size_t count = size * pixels * channels;
    Arena arena;
    Random random{1};
    ComputeContext context{random, arena, true};
    const auto part = [&](std::vector<float>& all) {
      return std::span{all}.subspan(offset, count);
    };
    const auto saved = cpu.layer->forward({size, cpu.w, part(cpu.x), part(cpu.y), context});
    std::vector<float> dy(part(cpu.dy).begin(), part(cpu.dy).end());
    const float share = static_cast<float>(size) / static_cast<float>(samples);
    cpu.layer->backward({size, cpu.w, part(cpu.x), part(cpu.y), saved, share, true, dy,
                         part(cpu.dx), expected_g, context});
  }
  expect_near(y, cpu.y, 1e-5F);
  expect_near(dx, cpu.dx, 1e-5F);
  expect_near(g, expected_g, 1e-5F);
}

INSTANTIATE_TEST_SUITE_P(GroupSizes, BatchNorms, testing::Values(10, 5, 4, 256));

TEST(BatchNorms, KeepNan) {
  const std::vector<float> w{1, 0, 0, 0};
  const float mean = 0;
  float inverse = std::nanf("");
  float a = 0;
  float b = 0;
  PrepareNormalise{1, w.data(), &mean, &inverse, &a, &b, 1e-5F}(0);
  EXPECT_TRUE(std::isnan(a)) << "the CPU's scores are NaN";
}

TEST(BatchNorms, LeaveTheRunningStatisticsOfOneRowAlone) {
  const std::vector<float> w{1, 0, 3, 4};
  const float mean = 6;
  const float inverse = 1;
  float products = 0;
  float totals = 1;
  float a = 0;
  std::vector<float> g(4);
  PrepareNormaliseBackward{{1, 1, 1}, w.data(), &mean, &inverse, &products, &totals,
                           &a,        g.data(), 1e-5F, 0.1F,     1}(0);
  EXPECT_EQ(g, (std::vector<float>{0, 1, 0, 0}));
}

TEST(BatchNorms, UseRunningStatisticsInEvaluation) {
  CpuLayer cpu{"batch-norm", {7}, 5};
  cpu.w[21] = -0.5F;  // Pushes that arrive out of order can make a variance negative.
  cpu.run(false);
  std::vector<float> mean(cpu.w.begin() + 14, cpu.w.begin() + 21);
  std::vector<float> inverse(cpu.w.begin() + 21, cpu.w.end());
  std::vector<float> a(7);
  std::vector<float> b(7);
  run(7, PrepareNormalise{7, cpu.w.data(), mean.data(), inverse.data(), a.data(), b.data(), 1e-5F});
  std::vector<float> y(cpu.y.size());
  run(y.size(), Normalise{{5, 7, 5}, a.data(), b.data(), cpu.x.data(), y.data()});
  expect_near(y, cpu.y, 1e-5F);
}

}  // namespace
}  // namespace starling::models::cuda
