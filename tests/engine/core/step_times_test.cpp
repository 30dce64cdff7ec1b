#include "starling/engine/core/step_times.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(StepTimes, RecheckIntervalIsAQuarterOfTheMedian) {
  StepTimes times;
  for (const Time step_time : {8ms, 100ms, 4ms}) times.add(step_time);
  EXPECT_EQ(times.recheck_interval(), 2ms);
}

TEST(StepTimes, KeepsTheLastFifteen) {
  StepTimes times;
  for (int i = 0; i < 100; ++i) times.add(1h);
  for (int i = 0; i < 15; ++i) times.add(4ms);
  EXPECT_EQ(times.recheck_interval(), 1ms);
}

TEST(StepTimes, RecheckIntervalHasAMinimum) {
  StepTimes times;
  EXPECT_EQ(times.recheck_interval(), 50us);
  times.add(3us);
  EXPECT_EQ(times.recheck_interval(), 50us);
}

}  // namespace
}  // namespace starling::core
