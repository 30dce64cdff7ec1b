#include "starling/tools/report/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "starling/base/random.hpp"

namespace starling::program {
namespace {

TEST(Statistics, ComputeMeanDeviationAndLimits) {
  const std::vector<double> values{2, 4, 4, 4, 5, 5, 7, 9};
  const Summary summary = compute_statistics(values);
  EXPECT_EQ(summary.count, 8U);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_DOUBLE_EQ(summary.sd, std::sqrt(32.0 / 7));
  EXPECT_EQ(summary.min, 2);
  EXPECT_EQ(summary.max, 9);
  EXPECT_DOUBLE_EQ(standard_error(summary), std::sqrt(32.0 / 7 / 8));
  // Student's t of 7 degrees of freedom is 2.3646.
  EXPECT_NEAR(confidence_95(summary), 2.3646 * std::sqrt(32.0 / 7 / 8), 1e-4);
}

TEST(Statistics, MedianIsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(Statistics, HaveNoDeviationForFewerThanTwoValues) {
  EXPECT_EQ(compute_statistics({}).count, 0U);
  const std::vector<double> one{3};
  EXPECT_EQ(compute_statistics(one).mean, 3);
  EXPECT_EQ(compute_statistics(one).sd, 0);
  EXPECT_EQ(confidence_95(compute_statistics(one)), 0);
}

// The values are from published tables of Student's t distribution, two-sided, 0.95.
TEST(Statistics, KnowStudentsT) {
  for (const auto& [degrees, t] : {std::pair{1U, 12.7062},
                                   {2U, 4.3027},
                                   {4U, 2.7764},
                                   {9U, 2.2622},
                                   {19U, 2.0930},
                                   {30U, 2.0423},
                                   {120U, 1.9799},
                                   {100000U, 1.9600}})
    EXPECT_NEAR(student_t_95(degrees), t, 6e-5) << degrees;
}

// 95 % of the intervals must contain the true mean: of 4,000, on average 3,800 with a standard
// deviation of 14.
TEST(Statistics, IntervalsContainTheMeanIn95PercentOfCases) {
  Random random{1};
  int intervals_with_mean = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<double> values(5);
    for (double& value : values) value = 10 + random.normal();
    const Summary summary = compute_statistics(values);
    intervals_with_mean += std::abs(summary.mean - 10) <= 2.7764 * standard_error(summary) ? 1 : 0;
  }
  EXPECT_NEAR(intervals_with_mean, 3800, 56);
}

TEST(Statistics, OfEqualValuesAreThatValue) {
  for (const double value : {10.0, 0.1, 7.7}) {
    const Summary summary = compute_statistics(std::vector<double>(300, value));
    EXPECT_EQ(summary.mean, value);
    EXPECT_EQ(summary.sd, 0);
  }
}

}  // namespace
}  // namespace starling::program
