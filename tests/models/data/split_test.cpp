#include "starling/models/data/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace starling::models {
namespace {

using Rows = std::vector<std::uint32_t>;

std::string message_of(const Result<SplitRows>& rows) {
  return rows ? "no error" : rows.error().message;
}

TEST(SplitFirst, PutsTheFirstRowsIntoTraining) {
  const SplitRows split = split_first(5, 3).value();
  EXPECT_EQ(split.train, (Rows{0, 1, 2}));
  EXPECT_EQ(split.test, (Rows{3, 4}));
}

TEST(SplitFirst, RefusesToLeaveAPartEmpty) {
  EXPECT_EQ(message_of(split_first(5, 0)),
            "--split 0 of 5 rows leaves nothing to train on; valid: 1 to 4");
  EXPECT_EQ(message_of(split_first(5, 5)),
            "--split 5 of 5 rows leaves nothing to test on; valid: 1 to 4");
  EXPECT_EQ(message_of(split_first(5, 8000)),
            "--split 8000 of 5 rows leaves nothing to test on; valid: 1 to 4");
  EXPECT_EQ(message_of(split_first(1, 1)),
            "--split 1 of 1 rows leaves nothing to test on; valid: data of 2 rows or more");
}

TEST(HoldOut, DrawsTheShareBySeedAndKeepsTheOrder) {
  const auto [train, test] = hold_out(1000, 0.2, 1).value();
  EXPECT_EQ(test.size(), 200U);
  EXPECT_TRUE(std::ranges::is_sorted(train));
  EXPECT_TRUE(std::ranges::is_sorted(test));
  std::set<std::uint32_t> all(train.begin(), train.end());
  all.insert(test.begin(), test.end());
  EXPECT_EQ(all.size(), 1000U);
  EXPECT_EQ(hold_out(1000, 0.2, 1)->test, test);
  EXPECT_NE(hold_out(1000, 0.2, 2)->test, test);
}

/// Each row is held out with probability 0.3; the bound is five standard deviations of the binomial
/// distribution.
TEST(HoldOut, HoldsEveryRowOutEquallyOften) {
  std::vector<int> times_held_out(20, 0);
  for (std::uint64_t seed = 0; seed < 10'000; ++seed)
    for (const Rows test = hold_out(20, 0.3, seed)->test; const auto row : test)
      ++times_held_out[row];
  for (const int count : times_held_out) EXPECT_NEAR(count, 3000, 5 * 45.8);
}

TEST(HoldOut, RefusesSharesOutsideOfZeroToOne) {
  const std::string valid = " is not a share; valid: numbers between 0 and 1, both excluded";
  EXPECT_EQ(message_of(hold_out(5, 0, 1)), "--holdout 0" + valid);
  EXPECT_EQ(message_of(hold_out(5, 1, 1)), "--holdout 1" + valid);
  EXPECT_EQ(message_of(hold_out(5, -0.5, 1)), "--holdout -0.5" + valid);
  EXPECT_EQ(message_of(hold_out(5, std::nan(""), 1)), "--holdout nan" + valid);
  EXPECT_EQ(message_of(hold_out(5, 0.05, 1)),
            "--holdout 0.05 of 5 rows leaves nothing to test on; valid: 0.5, or --test SOURCE");
  EXPECT_EQ(message_of(hold_out(5, 0.95, 1)),
            "--holdout 0.95 of 5 rows leaves nothing to train on; valid: 0.5, or --test SOURCE");
  EXPECT_EQ(message_of(hold_out(1, 0.2, 1)),
            "--holdout 0.2 of 1 rows leaves nothing to test on; valid: data of 2 rows or more");
}

}  // namespace
}  // namespace starling::models
