#include "starling/tools/job/target.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

TEST(Target, LossesFallAndOtherMetricsRise) {
  EXPECT_TRUE(parse_target("accuracy=0.95")->at_least);
  EXPECT_TRUE(parse_target("recall=0.5")->at_least);
  EXPECT_FALSE(parse_target("loss=0.1")->at_least);
  EXPECT_FALSE(parse_target("mse=2")->at_least);
  EXPECT_EQ(parse_target("mse=2")->value, 2);
}

TEST(Target, ADirectionMayBeWritten) {
  EXPECT_FALSE(parse_target("spread<=0.2")->at_least);
  EXPECT_TRUE(parse_target("recall >= 3")->at_least);
  EXPECT_EQ(parse_target("recall >= 3")->metric, "recall");
  EXPECT_EQ(print(*parse_target("loss=3")), "loss<=3");
}

TEST(Target, RefusesATargetReachedByGettingWorse) {
  EXPECT_EQ(parse_target("loss>=0.1").error().message,
            "'loss>=0.1' would be reached by getting worse; valid: loss<=0.1");
  EXPECT_EQ(parse_target("accuracy<=0.9").error().message,
            "'accuracy<=0.9' would be reached by getting worse; valid: accuracy>=0.9");
}

TEST(Target, RefusesAValueThatNoFigureCanHave) {
  EXPECT_EQ(
      parse_target("accuracy>=1.5").error().message,
      "'accuracy>=1.5' asks for a value that accuracy cannot have; valid: accuracy from 0 to 1");
  EXPECT_EQ(parse_target("mse=-1").error().message,
            "'mse=-1' cannot be reached; valid: mse of 0 or more");
  EXPECT_TRUE(parse_target("accuracy=1"));
  EXPECT_TRUE(parse_target("loss=-1"));  // a log density may be above 1
}

TEST(Target, OtherTextIsRefused) {
  for (const char* text : {"", "loss", "=3", "loss=", "loss=x", "loss=nan", "<=3", "loss<3"})
    EXPECT_FALSE(parse_target(text)) << text;
}

TEST(Target, MustBeAFigureOfTheModel) {
  const actor::Target target{.metric = "acuracy", .value = 1};
  const auto checked = check_target(target, {{"loss", 1}, {"accuracy", 0}});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "until: the model has no metric 'acuracy' on this test data; did you mean 'accuracy'? "
            "valid: loss, "
            "accuracy");
}

}  // namespace
}  // namespace starling::program
