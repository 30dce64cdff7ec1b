#include "starling/tools/repro/experiment_results.hpp"

#include <gtest/gtest.h>

#include "starling/tools/repro/repro_data.hpp"

namespace starling::program {
namespace {

Summary mean(double value) { return {.count = 4, .mean = value, .sd = 1}; }

TEST(ExperimentResults, RateNumbersByTheirRelativeDifference) {
  ExperimentResults results;
  results.add("exact", 200, mean(200));
  results.add("within the reading error", 200, mean(205.9));
  results.add("close", 200, mean(181));
  results.add("too far", 200, mean(221));
  ASSERT_EQ(results.claims.size(), 4U);
  EXPECT_EQ(results.claims[0].status, ClaimStatus::reproduced);
  EXPECT_EQ(results.claims[1].status, ClaimStatus::reproduced);
  EXPECT_EQ(results.claims[2].status, ClaimStatus::close);
  EXPECT_EQ(results.claims[3].status, ClaimStatus::not_reproduced);
  EXPECT_EQ(results.claims[2].here, "181.0 ± 0.5");
}

TEST(ExperimentResults, ShowClaimsThatAreNotReproduced) {
  ExperimentResults results;
  results.add("the moon", "cheese", "stone", false);
  const auto table = claims_table(results);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"the moon", "cheese", "stone", "not reproduced"}));
}

TEST(ExperimentResults, KeepAPlotForEachPicture) {
  ExperimentResults results;
  const Picture picture = results.add(Plot{.name = "one", .title = "One"}, "the first");
  EXPECT_EQ(picture.name, "one");
  EXPECT_EQ(picture.caption, "the first");
  ASSERT_EQ(results.plots.size(), 1U);
  EXPECT_EQ(results.plots[0].title, "One");
}

}  // namespace
}  // namespace starling::program
