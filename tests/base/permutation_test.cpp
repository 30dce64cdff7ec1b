#include "starling/base/permutation.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace starling {
namespace {

class PermutationSizes : public testing::TestWithParam<std::uint64_t> {};

TEST_P(PermutationSizes, ReturnsEveryNumberOnce) {
  const std::uint64_t size = GetParam();
  const Permutation permutation{size, 7};
  std::vector<int> visits(size);
  for (std::uint64_t i = 0; i < size; ++i) ++visits.at(permutation(i));
  for (const int count : visits) EXPECT_EQ(count, 1);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PermutationSizes,
                         testing::Values(1, 2, 3, 4, 5, 17, 64, 1000, 8191, 8192, 8193));

TEST(Permutation, MovesEveryNumberToEveryPositionEquallyOften) {
  constexpr std::uint64_t size = 10;
  constexpr int keys = 20000;
  std::vector<double> counts(size * size);
  for (std::uint64_t key = 0; key < keys; ++key) {
    const Permutation permutation{size, key};
    for (std::uint64_t i = 0; i < size; ++i) ++counts[i * size + permutation(i)];
  }
  double chi_square = 0;
  const double expected = double{keys} / size;
  for (const double count : counts)
    chi_square += (count - expected) * (count - expected) / expected;
  // (size - 1)^2 = 81 degrees of freedom: mean 81, standard deviation sqrt(162) = 12.73.
  EXPECT_LT(chi_square, 81 + 5 * 12.73);
}

/// Neighbours do not stay together, as they do if all numbers are moved by the same distance.
TEST(Permutation, TakesEveryPairForTheFirstTwoEquallyOften) {
  constexpr std::uint64_t size = 5;
  constexpr int keys = 20000;
  std::vector<double> counts(size * size);
  for (std::uint64_t key = 0; key < keys; ++key) {
    const Permutation permutation{size, key};
    ++counts[permutation(0) * size + permutation(1)];
  }
  double chi_square = 0;
  const double expected = double{keys} / (size * (size - 1));
  for (std::uint64_t i = 0; i < counts.size(); ++i)
    if (i % (size + 1) != 0)
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  // 19 degrees of freedom: mean 19, standard deviation sqrt(38) = 6.16.
  EXPECT_LT(chi_square, 19 + 5 * 6.16);
}

}  // namespace
}  // namespace starling
