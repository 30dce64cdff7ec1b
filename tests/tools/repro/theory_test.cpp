#include "starling/tools/repro/theory.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace starling::program {
namespace {

TEST(LagTheory, HasThePublishedSmallestBounds) {
  struct Published {
    double beta, bound, a;
  };
  for (const auto& [beta, bound, a] :
       {Published{1, 14.66, 0.51}, Published{4, 11.39, 0.39}, Published{16, 10.08, 0.30}}) {
    const LagMinimum minimum = smallest_mean_lag_bound({.r = 4, .beta = beta, .steps = 10000});
    EXPECT_NEAR(minimum.bound, bound, 0.005) << beta;
    EXPECT_NEAR(minimum.a, a, 0.006) << beta;
  }
}

// In the theory, lag k has the probability S f(k) for k <= r, and S a^(k-r) for r < k <= steps. The
// sum of f is F(r) = a^(1/beta), and S makes all probabilities sum to 1. The bound replaces f(k) by
// 1, and the sum over the tail by a larger one. Therefore the bound is never below the exact mean,
// which this test computes for an f that is equal for all lags up to r.
TEST(LagTheory, BoundsTheExactMeanLag) {
  const LagTheory theory{.r = 4, .beta = 4, .steps = 200};
  for (const double a : {0.2, 0.5, 0.8}) {
    const double share_up_to_r = std::pow(a, 1 / theory.beta);
    double norm = share_up_to_r;
    double lag_sum = share_up_to_r * theory.r / 2;
    for (double k = theory.r + 1; k <= theory.steps; ++k) {
      norm += std::pow(a, k - theory.r);
      lag_sum += k * std::pow(a, k - theory.r);
    }
    EXPECT_GE(mean_lag_bound(theory, a), lag_sum / norm) << a;
  }
}

TEST(LagTheory, HasBoundsThatGrowWithoutLimitAsAGoesToOne) {
  const LagTheory theory{.r = 4, .beta = 4, .steps = 10000};
  EXPECT_GT(mean_lag_bound(theory, 0.999), 100 * smallest_mean_lag_bound(theory).bound);
  EXPECT_GT(mean_squared_lag_bound(theory, 0.99), mean_squared_lag_bound(theory, 0.5));
}

}  // namespace
}  // namespace starling::program
