#include "starling/engine/core/timer.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

struct Timers {
  std::vector<SetTimer>& out;
};

TEST(Timer, SetsATimerOnlyWhereNoneComesInTime) {
  Timer alarm;
  std::vector<SetTimer> set;
  const Timers timers{set};
  alarm.want(timers, 5ms);
  alarm.want(timers, 9ms);
  EXPECT_EQ(set.size(), 1U);
  alarm.want(timers, 3ms);
  EXPECT_EQ(set.size(), 2U);
}

TEST(Timer, CallOfSomeoneElseLeavesItsTimersSet) {
  Timer alarm;
  std::vector<SetTimer> set;
  const Timers timers{set};
  alarm.want(timers, 5ms);
  alarm.fired(2ms);
  alarm.want(timers, 5ms);
  EXPECT_EQ(set.size(), 1U);
  alarm.fired(5ms);
  alarm.want(timers, 7ms);
  EXPECT_EQ(set.size(), 2U);
}

}  // namespace
}  // namespace starling::core
