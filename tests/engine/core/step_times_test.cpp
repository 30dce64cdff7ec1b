#include "starling/engine/core/step_times.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(StepTimes, LookAgainAfterAQuarterOfTheMedian) {
  StepTimes times;
  for (const Time took : {8ms, 100ms, 4ms}) times.add(took);
  EXPECT_EQ(times.recheck_interval(), 2ms);
}

TEST(StepTimes, ForgetAllButTheLastFifteen) {
  StepTimes times;
  for (int i = 0; i < 100; ++i) times.add(1h);
  for (int i = 0; i < 15; ++i) times.add(4ms);
  EXPECT_EQ(times.recheck_interval(), 1ms);
}

TEST(StepTimes, NeverLookAgainSoonerThanTimersAreWorth) {
  StepTimes times;
  EXPECT_EQ(times.recheck_interval(), 50us);
  times.add(3us);
  EXPECT_EQ(times.recheck_interval(), 50us);
}

}  // namespace
}  // namespace starling::core
