#include "starling/app/target.hpp"

#include <gtest/gtest.h>

namespace starling::app {
namespace {

TEST(Target, LossesFallAndTheRestRises) {
  EXPECT_TRUE(parse_target("accuracy=0.95")->at_least);
  EXPECT_TRUE(parse_target("recall=0.5")->at_least);
  EXPECT_FALSE(parse_target("loss=0.1")->at_least);
  EXPECT_FALSE(parse_target("mse=2")->at_least);
  EXPECT_EQ(parse_target("mse=2")->value, 2);
}

TEST(Target, ADirectionMayBeWritten) {
  EXPECT_FALSE(parse_target("accuracy<=0.2")->at_least);
  EXPECT_TRUE(parse_target("loss >= 3")->at_least);
  EXPECT_EQ(parse_target("loss >= 3")->metric, "loss");
  EXPECT_EQ(print(*parse_target("loss=3")), "loss<=3");
}

TEST(Target, OtherTextIsRefused) {
  for (const char* text : {"", "loss", "=3", "loss=", "loss=x", "loss=nan", "<=3", "loss<3"})
    EXPECT_FALSE(parse_target(text)) << text;
}

TEST(Target, MustBeAFigureOfTheModel) {
  const live::Target target{.metric = "acuracy", .value = 1};
  const auto checked = check_target(target, {{"loss", 1}, {"accuracy", 0}});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "until: the model has no figure 'acuracy'; did you mean 'accuracy'? valid: loss, "
            "accuracy");
}

}  // namespace
}  // namespace starling::app
