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

TEST(WorkMeter, MeasuresSinceTheLastRestart) {
  WorkMeter meter;
  EXPECT_EQ(meter.done().samples, 0U);
  for (int i = 0; i < 4; ++i) meter.add(10, std::chrono::milliseconds{5});
  meter.restart();
  for (int i = 0; i < 3; ++i) meter.add(20, std::chrono::milliseconds{1});
  EXPECT_EQ(meter.done().samples, 100U) << "3 batches are few: those before count too";
  EXPECT_EQ(meter.done().time, std::chrono::milliseconds{23});
  meter.restart();
  EXPECT_EQ(meter.done().samples, 100U) << "and they still do";
  meter.add(20, std::chrono::milliseconds{1});
  EXPECT_EQ(meter.done().samples, 80U);
  EXPECT_EQ(meter.done().time, std::chrono::milliseconds{4});
}

}  // namespace
}  // namespace starling::core
