#include "starling/base/random.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace starling {
namespace {

TEST(Random, RepeatsWithTheSameSeedAndDiffersBetweenStreams) {
  Random a = Random::stream(1, 2, 3);
  Random b = Random::stream(1, 2, 3);
  Random c = Random::stream(1, 3, 2);
  const auto first = a();
  EXPECT_EQ(first, b());
  EXPECT_NE(first, c());
}

TEST(Random, BelowIsUniform) {
  Random random{42};
  std::vector<double> counts(7);
  constexpr int draws = 70000;
  for (int i = 0; i < draws; ++i) ++counts[random.below(7)];
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi_square, 6 + 5 * std::sqrt(12.0));
}

/// With three quarters of the numbers that 64 bits hold as the bound, a draw that rejects nothing
/// is a multiple of 3 half of the time.
TEST(Random, BelowIsUniformForBoundsNearTheLargestNumber) {
  Random random{43};
  constexpr int draws = 30000;
  std::vector<double> counts(3);
  for (int i = 0; i < draws; ++i) ++counts[random.below(std::uint64_t{3} << 62U) % 3];
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi_square, 2 + 5 * 2);
}

TEST(Random, NormalAndExponentialHaveTheExpectedMoments) {
  Random random{5};
  constexpr int draws = 100000;
  double sum = 0;
  double squares = 0;
  double exponential_sum = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    exponential_sum += random.exponential(0.1);
  }
  EXPECT_NEAR(sum / draws, 0, 5 / std::sqrt(draws));
  EXPECT_NEAR(squares / draws, 1, 5 * std::sqrt(2.0 / draws));
  EXPECT_NEAR(exponential_sum / draws, 0.1, 5 * 0.1 / std::sqrt(draws));
}

}  // namespace
}  // namespace starling
