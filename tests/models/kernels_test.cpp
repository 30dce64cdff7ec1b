#include "starling/models/kernels/kernels.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/models/kernels/gemm.hpp"

namespace starling::models {
namespace {

/// Returns `n` uniform random numbers from -1 to 1.
template <class T>
std::vector<T> draw(std::size_t n, std::uint64_t seed) {
  Random random{seed};
  std::vector<T> values(n);
  for (T& value : values) value = static_cast<T>(random.real(-1, 1));
  return values;
}

template <class T>
class Kernels : public testing::Test {
 protected:
  /// The rounding error of a sum of about a thousand terms below 1.
  static constexpr double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-12;
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Kernels, Precisions);

/// Sizes near the vector widths and the lengths of unrolled loops.
const std::vector<std::size_t> sizes{0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 129, 1000};

TYPED_TEST(Kernels, AddAndMultiplyLikePlainLoops) {
  using T = TypeParam;
  for (const std::size_t n : sizes) {
    const auto x = draw<T>(n, 1);
    auto y = draw<T>(n, 2);
    auto expected = y;
    double product = 0;
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      product += static_cast<double>(x[i]) * static_cast<double>(y[i]);
      squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      expected[i] += T{3} * x[i];
    }
    EXPECT_NEAR(static_cast<double>(dot<T, T>(x, y)), product, TestFixture::tolerance) << n;
    EXPECT_NEAR(squared_norm<T>(x), squares, 1e-9) << n;
    axpy<T, T>(T{3}, x, y);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(static_cast<double>(y[i]), static_cast<double>(expected[i]), 1e-6);
    scale<T>(T{-2}, y);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(static_cast<double>(y[i]), static_cast<double>(T{-2} * expected[i]), 1e-6);
  }
}

TEST(FloatKernels, MixFloatRowsWithDoubleWeights) {
  for (const std::size_t n : sizes) {
    const auto x = draw<float>(n, 3);
    auto y = draw<double>(n, 4);
    double product = 0;
    for (std::size_t i = 0; i < n; ++i) product += static_cast<double>(x[i]) * y[i];
    EXPECT_NEAR((dot<float, double>(x, y)), product, 1e-12);
    const auto before = y;
    axpy<float, double>(0.5, x, y);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_DOUBLE_EQ(y[i], before[i] + 0.5 * static_cast<double>(x[i]));
    std::vector<double> copy(n);
    convert<double>(x, copy);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(copy[i], static_cast<double>(x[i]));
  }
}

TYPED_TEST(Kernels, SumColumnsAndFillRows) {
  using T = TypeParam;
  for (const std::size_t columns : {1U, 3U, 10U, 33U}) {
    const auto x = draw<T>(7 * columns, 5);
    std::vector<T> sums(columns, T{1});
    add_column_sums<T>(x, sums);
    for (std::size_t j = 0; j < columns; ++j) {
      double expected = 1;
      for (std::size_t i = 0; i < 7; ++i) expected += static_cast<double>(x[i * columns + j]);
      EXPECT_NEAR(static_cast<double>(sums[j]), expected, 1e-5);
    }
    std::vector<T> z(3 * columns);
    fill_rows<T>(sums, z);
    for (std::size_t i = 0; i < z.size(); ++i) EXPECT_EQ(z[i], sums[i % columns]);
  }
}

TYPED_TEST(Kernels, ComputeActivationsAndTheirDerivatives) {
  using T = TypeParam;
  for (const std::size_t n : sizes) {
    auto x = draw<T>(n, 6);
    for (T& value : x) value *= T{5};
    auto relu_x = x;
    relu<T>(relu_x);
    auto tanh_x = x;
    tanh<T>(tanh_x);
    auto exp_x = x;
    exp<T>(exp_x);
    std::vector<T> relu_derivative(n, T{2});
    relu_backward<T>(relu_x, relu_derivative);
    std::vector<T> tanh_derivative(n, T{2});
    tanh_backward<T>(tanh_x, tanh_derivative);
    for (std::size_t i = 0; i < n; ++i) {
      const auto exact = static_cast<double>(x[i]);
      EXPECT_EQ(relu_x[i], std::max(x[i], T{0}));
      EXPECT_EQ(relu_derivative[i], x[i] > 0 ? T{2} : T{0});
      EXPECT_NEAR(static_cast<double>(tanh_x[i]), std::tanh(exact), 3e-7);
      EXPECT_NEAR(static_cast<double>(exp_x[i]) / std::exp(exact), 1, 3e-7);
      EXPECT_NEAR(static_cast<double>(tanh_derivative[i]), 2 * (1 - std::pow(std::tanh(exact), 2)),
                  2e-6);
    }
  }
}

TEST(FloatKernels, ExponentialIsAccurateOverItsWholeRange) {
  for (int i = -86999; i < 88000; i += 7) {
    std::vector<float> x{static_cast<float>(i) * 1e-3F};
    const double exact = std::exp(static_cast<double>(x[0]));
    exp<float>(x);
    ASSERT_NEAR(static_cast<double>(x[0]) / exact, 1, 3e-7) << i;
  }
}

TEST(FloatKernels, ExtremesSaturateAndNanStaysNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x{1e4F, -1e4F, infinity, -infinity, nan};
  auto tanh_x = x;
  tanh<float>(tanh_x);
  EXPECT_EQ(tanh_x[0], 1);
  EXPECT_EQ(tanh_x[1], -1);
  EXPECT_EQ(tanh_x[2], 1);
  EXPECT_EQ(tanh_x[3], -1);
  EXPECT_TRUE(std::isnan(tanh_x[4]));
  auto exp_x = x;
  exp<float>(exp_x);
  EXPECT_TRUE(std::isfinite(exp_x[0]) && exp_x[0] > 1e38F);
  EXPECT_TRUE(exp_x[1] >= 0 && exp_x[1] < 1e-37F);
  EXPECT_TRUE(std::isnan(exp_x[4]));
  relu<float>(x);
  EXPECT_EQ(x[2], infinity);
  EXPECT_EQ(x[3], 0);
  EXPECT_TRUE(std::isnan(x[4]));
}

TYPED_TEST(Kernels, ClampReturnsTheSquaredNormOfTheOldValues) {
  std::vector<TypeParam> x{3, -4, TypeParam{0.25}};
  EXPECT_DOUBLE_EQ(clamp<TypeParam>(TypeParam{0.5}, x), 25.0625);
  EXPECT_EQ(x, (std::vector<TypeParam>{TypeParam{0.5}, TypeParam{-0.5}, TypeParam{0.25}}));
}

TYPED_TEST(Kernels, SparseRowsMultiplyLikeDenseOnes) {
  using T = TypeParam;
  const std::vector<std::uint32_t> columns{0, 3, 4};
  const std::vector<float> values{2, -1, 0.5F};
  for (const std::size_t width : {1U, 2U, 17U}) {
    auto w = draw<T>(5 * width, 7);
    std::vector<T> z(width, T{1});
    add_sparse_product<T>(columns, values, w, z);
    const auto before = w;
    add_sparse_outer<T>(columns, values, z, w);
    for (std::size_t j = 0; j < width; ++j) {
      const auto at = [&](std::size_t row) { return static_cast<double>(before[row * width + j]); };
      EXPECT_NEAR(static_cast<double>(z[j]), 1 + 2 * at(0) - at(3) + 0.5 * at(4), 1e-6);
      EXPECT_EQ(w[1 * width + j], before[1 * width + j]);
      EXPECT_NEAR(static_cast<double>(w[3 * width + j]), at(3) - static_cast<double>(z[j]), 1e-6);
    }
  }
}

/// Compares gemm() with plain loops: c = a b + beta c, where a is m x k and b is k x n.
template <class T>
void expect_product(std::size_t m, std::size_t n, std::size_t k, bool transpose_a, bool transpose_b,
                    T beta) {
  const double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-12;
  const auto a = draw<T>(m * k, 8);
  const auto b = draw<T>(k * n, 9);
  auto c = draw<T>(m * n, 10);
  const auto before = c;
  MatrixView<const T> left{a.data(), m, k};
  if (transpose_a) left = MatrixView<const T>{a.data(), k, m}.transpose();
  MatrixView<const T> right{b.data(), k, n};
  if (transpose_b) right = MatrixView<const T>{b.data(), n, k}.transpose();
  gemm<T>(left, right, beta, {c.data(), m, n});
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = static_cast<double>(beta) * static_cast<double>(before[i * n + j]);
      for (std::size_t l = 0; l < k; ++l)
        sum += static_cast<double>(a[transpose_a ? l * m + i : i * k + l]) *
               static_cast<double>(b[transpose_b ? j * k + l : l * n + j]);
      ASSERT_NEAR(static_cast<double>(c[i * n + j]), sum, tolerance)
          << m << "x" << k << " by " << k << "x" << n << transpose_a << transpose_b << " beta "
          << beta;
    }
  }
}

TYPED_TEST(Kernels, ProductsAgreeWithPlainLoopsForEveryShape) {
  const std::vector<std::array<std::size_t, 3>> shapes{
      {1, 1, 1}, {1, 5, 3}, {7, 1, 4}, {3, 2, 1}, {17, 13, 9}, {64, 10, 33}, {65, 31, 129}};
  for (const auto& [m, n, k] : shapes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const TypeParam beta : {TypeParam{0}, TypeParam{1}, TypeParam{0.5}})
          expect_product<TypeParam>(m, n, k, transpose_a, transpose_b, beta);
}

TYPED_TEST(Kernels, ProductsIgnoreOldValuesIfBetaIsZero) {
  const std::vector<TypeParam> a{1, 2};
  const std::vector<TypeParam> b{3, 4};
  std::vector<TypeParam> c{std::numeric_limits<TypeParam>::quiet_NaN()};
  gemm<TypeParam>({a.data(), 1, 2}, {b.data(), 2, 1}, TypeParam{0}, {c.data(), 1, 1});
  EXPECT_EQ(c[0], TypeParam{11});
  gemm<TypeParam>({a.data(), 1, 0}, {b.data(), 0, 1}, TypeParam{1}, {c.data(), 1, 1});
  EXPECT_EQ(c[0], TypeParam{11});
}

}  // namespace
}  // namespace starling::models
