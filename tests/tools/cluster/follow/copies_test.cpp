#include "starling/tools/cluster/follow/copies.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

TEST(ModelCopies, AreEqualIfAllHaveTheSameHashAfterTheSameRound) {
  EXPECT_EQ(have_equal_copies({{7, 123}, {7, 123}, {7, 123}}), true);
  EXPECT_EQ(have_equal_copies({{7, 123}, {7, 124}, {7, 123}}), false);
  EXPECT_EQ(have_equal_copies({{7, 123}}), true);
}

TEST(ModelCopies, AreNotComparedIfAHashIsMissingOrRoundsDiffer) {
  EXPECT_EQ(have_equal_copies({}), std::nullopt);
  EXPECT_EQ(have_equal_copies({{0, 0}, {0, 0}}), std::nullopt);
  EXPECT_EQ(have_equal_copies({{7, 123}, {0, 0}}), std::nullopt);
  EXPECT_EQ(have_equal_copies({{7, 123}, {8, 123}}), std::nullopt);
}

}  // namespace
}  // namespace starling::program
