#include "starling/engine/core/timer.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

struct TimerContext {
  std::vector<SetTimer>& out;
};

TEST(Timer, SetsATimerOnlyIfNonePendingFiresEarlyEnough) {
  Timer timer;
  std::vector<SetTimer> effects;
  const TimerContext context{effects};
  timer.ensure(context, 5ms);
  timer.ensure(context, 9ms);
  EXPECT_EQ(effects.size(), 1U);
  timer.ensure(context, 3ms);
  EXPECT_EQ(effects.size(), 2U);
}

TEST(Timer, KeepsItsTimersIfOnTimerIsCalledForAnother) {
  Timer timer;
  std::vector<SetTimer> effects;
  const TimerContext context{effects};
  timer.ensure(context, 5ms);
  timer.remove_due(2ms);
  timer.ensure(context, 5ms);
  EXPECT_EQ(effects.size(), 1U);
  timer.remove_due(5ms);
  timer.ensure(context, 7ms);
  EXPECT_EQ(effects.size(), 2U);
}

}  // namespace
}  // namespace starling::core
