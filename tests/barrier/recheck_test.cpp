#include "starling/barrier/recheck.hpp"

#include <gtest/gtest.h>

namespace starling::barrier {
namespace {

using namespace std::chrono_literals;

std::string recheck_error(std::string_view text) {
  auto parsed = parse_recheck(text);
  return parsed ? "read as " + print(*parsed) : parsed.error().message;
}

TEST(Recheck, ReadsEveryTrigger) {
  EXPECT_EQ(*parse_recheck("arrival"), Recheck{.arrival = true});
  EXPECT_EQ(*parse_recheck("notify"), Recheck{.notify = true});
  EXPECT_EQ(*parse_recheck("interval:5ms"), Recheck{.interval = 5ms});
  EXPECT_EQ(*parse_recheck("interval:auto"), Recheck{.interval = Recheck::automatic});
  EXPECT_EQ(*parse_recheck("notify+interval:1.5s"), (Recheck{.notify = true, .interval = 1500ms}));
}

TEST(Recheck, AcceptsTriggersInAnyOrder) {
  EXPECT_EQ(*parse_recheck("interval:5ms+notify"), *parse_recheck("notify+interval:5ms"));
}

TEST(Recheck, ReadsPrintedRechecks) {
  for (const bool arrival : {false, true})
    for (const bool notify : {false, true})
      for (const std::optional<Recheck::Duration> interval :
           {std::optional<Recheck::Duration>{}, {Recheck::automatic}, {50us}, {1h}, {1234567ns}}) {
        const Recheck recheck{arrival, notify, interval};
        if (recheck == Recheck{}) continue;
        EXPECT_EQ(*parse_recheck(print(recheck)), recheck) << print(recheck);
      }
}

TEST(Recheck, HasTheDocumentedDefaults) {
  EXPECT_EQ(print(Recheck::central()), "arrival");
  EXPECT_EQ(print(Recheck::distributed()), "notify+interval:auto");
}

TEST(Recheck, RefusesUnknownTriggersAndOptions) {
  EXPECT_EQ(recheck_error("notifi"),
            "recheck 'notifi': 'notifi' is unknown; did you mean 'notify'? "
            "valid: arrival, notify, interval");
  EXPECT_EQ(recheck_error(""),
            "recheck '': names no trigger; valid: arrival, notify, interval:5ms, "
            "notify+interval:auto");
  EXPECT_EQ(recheck_error("notify+"),
            "recheck 'notify+': '' has no name; valid: NAME or NAME:OPTIONS");
  EXPECT_EQ(recheck_error("notify:3"),
            "recheck 'notify:3': notify: takes no options, but '3' is given; valid: notify");
}

TEST(Recheck, RefusesBadIntervals) {
  EXPECT_EQ(recheck_error("interval:0s"),
            "recheck 'interval:0s': interval:0s must be longer than 0");
  EXPECT_EQ(recheck_error("interval:-1ms"),
            "recheck 'interval:-1ms': '-1ms' is not a duration like 250us, 20ms, 1.5s, 2min or 1h");
  EXPECT_EQ(recheck_error("interval:5"),
            "recheck 'interval:5': '5' is not a duration like 250us, 20ms, 1.5s, 2min or 1h");
  EXPECT_EQ(recheck_error("interval"),
            "recheck 'interval': give the interval, as in interval:5ms or interval:auto");
}

TEST(Recheck, RefusesATriggerGivenTwice) {
  EXPECT_EQ(recheck_error("interval:5ms+interval:6ms"),
            "recheck 'interval:5ms+interval:6ms': 'interval' is given twice");
  EXPECT_EQ(recheck_error("notify+notify"), "recheck 'notify+notify': 'notify' is given twice");
  EXPECT_EQ(recheck_error("arrival+notify+arrival"),
            "recheck 'arrival+notify+arrival': 'arrival' is given twice");
}

}  // namespace
}  // namespace starling::barrier
