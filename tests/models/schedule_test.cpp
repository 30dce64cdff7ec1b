#include "starling/models/optimizer/schedule.hpp"

#include <gtest/gtest.h>

namespace starling::models {
namespace {

Schedule schedule_of(const char* text) { return parse_schedule(text).value(); }

TEST(Schedule, ConstantIsOne) {
  EXPECT_EQ(factor(schedule_of("constant"), 0), 1);
  EXPECT_EQ(factor(schedule_of("constant"), UINT64_MAX), 1);
}

TEST(Schedule, StepFallsAfterTheGivenNumberOfSamples) {
  const Schedule step = schedule_of("step:every=100,gamma=0.5");
  EXPECT_EQ(factor(step, 0), 1);
  EXPECT_EQ(factor(step, 99), 1);
  EXPECT_EQ(factor(step, 100), 0.5);
  EXPECT_EQ(factor(step, 250), 0.25);
}

TEST(Schedule, CosineFallsToItsFloorAndStaysThere) {
  const Schedule cosine = schedule_of("cosine:samples=1000,floor=0.2");
  EXPECT_EQ(factor(cosine, 0), 1);
  EXPECT_NEAR(factor(cosine, 500), 0.6, 1e-12);
  EXPECT_NEAR(factor(cosine, 250), 0.2 + 0.8 * 0.8535533905932737, 1e-12);
  EXPECT_NEAR(factor(cosine, 1000), 0.2, 1e-12);
  EXPECT_NEAR(factor(cosine, 5000), 0.2, 1e-12);
}

TEST(Schedule, PrintsWhatItReads) {
  for (const char* text :
       {"constant", "step:every=20000,gamma=0.5", "cosine:samples=7,floor=0.125"})
    EXPECT_EQ(print(schedule_of(text)), text);
  EXPECT_EQ(print(schedule_of("cosine:samples=7")), "cosine:samples=7,floor=0");
}

TEST(Schedule, EveryScheduleIsParsedAndBeginsAtOne) {
  for_each_alternative<Schedule>([]<class S>(const S& schedule) {
    EXPECT_EQ(parse_schedule(print(schedule)).value(), Schedule{schedule});
    const Schedule example = parse_schedule(S::example).value();
    EXPECT_TRUE(std::holds_alternative<S>(example)) << S::example;
    EXPECT_EQ(parse_schedule(print(example)).value(), example);
    EXPECT_EQ(factor(example, 0), 1) << S::example;
  });
  EXPECT_EQ(examples_of<Schedule>(),
            "constant | step:every=20000,gamma=0.5 | cosine:samples=600000");
}

TEST(Schedule, RefusesInvalidTexts) {
  const auto message = [](const char* text) { return parse_schedule(text).error().message; };
  EXPECT_EQ(message("cosinus"),
            "unknown schedule 'cosinus'; did you mean 'cosine'? valid: constant, step, cosine");
  EXPECT_EQ(message("step"), "step: needs every, e.g. step:every=20000,gamma=0.5");
  EXPECT_EQ(message("step:every=0"), "step: every=0 must be a whole number >= 1");
  EXPECT_EQ(message("cosine:floor=0"), "cosine: needs samples, e.g. cosine:samples=600000");
  EXPECT_EQ(message("cosine:samples=5,floor=2"), "cosine: floor=2 must be a number from 0 to 1");
  EXPECT_EQ(message("constant:x=1"),
            "constant: takes no options, but 'x=1' is given; valid: constant");
}

}  // namespace
}  // namespace starling::models
