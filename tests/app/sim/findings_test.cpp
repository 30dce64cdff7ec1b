#include "starling/app/sim/findings.hpp"

#include <gtest/gtest.h>

#include "starling/app/sim/repro_data.hpp"

namespace starling::app {
namespace {

Summary mean(double value) { return {.count = 4, .mean = value, .sd = 1}; }

TEST(Findings, JudgeNumbersByHowFarOffTheyAre) {
  Findings findings;
  findings.add("exact", 200, mean(200));
  findings.add("misread", 200, mean(205.9));
  findings.add("close", 200, mean(181));
  findings.add("off", 200, mean(221));
  ASSERT_EQ(findings.claims.size(), 4U);
  EXPECT_EQ(findings.claims[0].status, ClaimStatus::reproduced);
  EXPECT_EQ(findings.claims[1].status, ClaimStatus::reproduced);
  EXPECT_EQ(findings.claims[2].status, ClaimStatus::close);
  EXPECT_EQ(findings.claims[3].status, ClaimStatus::not_reproduced);
  EXPECT_EQ(findings.claims[2].here, "181.0 ± 0.5");
}

TEST(Findings, ShowWhatDoesNotReproduce) {
  Findings findings;
  findings.add("the moon", "cheese", "stone", false);
  const auto table = claims_table(findings);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"the moon", "cheese", "stone", "not reproduced"}));
}

TEST(Findings, KeepEachPlotForItsPicture) {
  Findings findings;
  const Picture picture = findings.add(Plot{.name = "one", .title = "One"}, "the first");
  EXPECT_EQ(picture.name, "one");
  EXPECT_EQ(picture.caption, "the first");
  ASSERT_EQ(findings.plots.size(), 1U);
  EXPECT_EQ(findings.plots[0].title, "One");
}

}  // namespace
}  // namespace starling::app
