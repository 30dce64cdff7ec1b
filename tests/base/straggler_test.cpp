/// Tests which workers a straggler specification slows down, and by which factors.
#include "starling/base/straggler.hpp"

#include <gtest/gtest.h>

namespace starling {
namespace {

Result<std::vector<double>> factors_of(const std::string& text, std::size_t workers) {
  return slowdown_factors({parse_straggler(text).value()}, workers);
}

TEST(Stragglers, AreTheLastWorkersAndSharesAreRounded) {
  EXPECT_EQ(factors_of("1:4x", 3).value(), (std::vector<double>{1, 1, 4}));
  EXPECT_EQ(factors_of("25%:4x", 4).value(), (std::vector<double>{1, 1, 1, 4}));
  EXPECT_EQ(factors_of("12.5%:4x", 4).value(), (std::vector<double>{1, 1, 1, 4}));
  EXPECT_EQ(factors_of("5%:2x", 40).value(), factors_of("2:2x", 40).value());
  EXPECT_EQ(factors_of("100%:2x", 2).value(), (std::vector<double>{2, 2}));
}

TEST(Stragglers, RefuseMoreStragglersThanWorkers) {
  const std::vector<StragglerRule> rules{parse_straggler("50%:4x").value(),
                                         parse_straggler("3:2x").value()};
  EXPECT_EQ(slowdown_factors(rules, 5).error().message,
            "straggler 3:2x: more stragglers than the job's 5 workers; valid: up to 5 in all");
  EXPECT_EQ(slowdown_factors(rules, 6).value(), (std::vector<double>{2, 2, 2, 4, 4, 4}));
}

TEST(Stragglers, WaitUntilTheWholeStepHasTakenTheirFactor) {
  using namespace std::chrono_literals;
  EXPECT_EQ(extra_delay(10ms, 5ms, 4), 4 * (10ms + 5ms) - 10ms);
  EXPECT_EQ(extra_delay(10ms, 5ms, 1), 5ms);
  EXPECT_EQ(extra_delay(10ms, 0ms, 1), 0ms);
  EXPECT_EQ(extra_delay(0ms, 5ms, 2), 10ms);
  EXPECT_EQ(extra_delay(1h, 24h * 300, 1e6), 24h * 365 - 1h) << "a year at most";
}

TEST(Stragglers, RefuseAShareThatRoundsToNoWorker) {
  EXPECT_EQ(factors_of("5%:4x", 4).error().message,
            "straggler 5%:4x: this share of 4 workers rounds to none; valid: 12.5%:4x or more, or "
            "a number of workers, 1:4x");
}

TEST(Stragglers, MayBeAway) {
  using namespace std::chrono_literals;
  const Absence half{5s, 10s};
  const auto parsed = parse_straggler("25%:away=5s/10s");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(print(*parsed), "25%:away=5s/10s");
  EXPECT_EQ(factors_of("25%:away=5s/10s", 4).value(), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(absences({*parsed}, 4).value(), (std::vector<Absence>{{}, {}, {}, half}));
  EXPECT_EQ(absences({parse_straggler("1:4x").value(), *parsed}, 4).value(),
            (std::vector<Absence>{{}, {}, half, {}}));
  EXPECT_TRUE(absences({parse_straggler("1:4x").value()}, 4).value().empty());
  EXPECT_EQ(absences({*parsed}, 1).error().message,
            "straggler 25%:away=5s/10s: this share of 1 workers rounds to none; valid: "
            "50%:away=5s/10s or more, or a number of workers, 1:away=5s/10s");
}

TEST(Stragglers, RefuseAnAbsenceThatIsNone) {
  const auto error_of = [](const char* text) { return parse_straggler(text).error().message; };
  for (const char* form :
       {"1:away=5s", "1:away=", "1:away=5/10", "1:away=5s/10s/1s", "1:away=-1s/2s"})
    EXPECT_EQ(error_of(form),
              "straggler '" + std::string{form} +
                  "' has no valid form; valid: away=5s/10s (away for 5s of each 10s)");
  EXPECT_EQ(error_of("1:away=0s/2s"),
            "straggler '1:away=0s/2s': nobody is away; valid: longer than 0s");
  EXPECT_EQ(error_of("1:away=2s/2s"),
            "straggler '1:away=2s/2s': nobody is ever back; valid: away for less than the period, "
            "2s");
}

TEST(Stragglers, AreRefusedWhereTheyCannotBeAway) {
  EXPECT_TRUE(check_always_available({parse_straggler("1:4x").value()}));
  EXPECT_EQ(check_always_available(
                {parse_straggler("1:4x").value(), parse_straggler("1:away=1s/2s").value()})
                .error()
                .message,
            "straggler 1:away=1s/2s: only simulated workers can be away; valid: slow ones, as "
            "1:4x, or `starling sim`");
}

TEST(Stragglers, RefuseAShareOrFactorOutOfBounds) {
  const auto error_of = [](const char* text) { return parse_straggler(text).error().message; };
  for (const char* share : {"0%:4x", "105%:4x", "-1%:4x"})
    EXPECT_EQ(error_of(share), "straggler '" + std::string{share} +
                                   "': no such share; valid: above 0 % and at most 100 %");
  EXPECT_EQ(error_of("0:4x"), "straggler '0:4x': slows nobody; valid: 1 worker or more");
  for (const char* factor : {"5%:0.5x", "1:1000001x"})
    EXPECT_EQ(error_of(factor),
              "straggler '" + std::string{factor} + "': no such factor; valid: from 1 to 1000000");
  for (const char* form : {"5%", "4x", "1:x", "one:4x", "1:4x:2"})
    EXPECT_NE(error_of(form).find("has no valid form; valid: 1:4x"), std::string::npos) << form;
}

TEST(Stragglers, ArePrintedAsTheyWereWritten) {
  for (int tenths = 1; tenths <= 1000; ++tenths) {
    std::string text = std::to_string(tenths / 10);
    if (tenths % 10 > 0) text += "." + std::to_string(tenths % 10);
    text += "%:4x";
    EXPECT_EQ(print(parse_straggler(text).value()), text);
  }
  for (const char* text : {"0.000001%:2x", "33.33333333333333%:1.5x"})
    EXPECT_EQ(parse_straggler(print(parse_straggler(text).value())).value(),
              parse_straggler(text).value());
}

TEST(Stragglers, SuggestAShareThatIsValid) {
  for (std::size_t workers = 1; workers <= 2000; ++workers) {
    const std::string message = factors_of("0.00001%:2x", workers).error().message;
    const auto from = message.find("valid: ") + 7;
    const auto valid = factors_of(message.substr(from, message.find(" or more") - from), workers);
    ASSERT_TRUE(valid) << message;
    EXPECT_EQ(valid->back(), 2) << message;
  }
}

}  // namespace
}  // namespace starling
