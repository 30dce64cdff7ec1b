#include "starling/engine/core/mode.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

using barrier::Barrier;
using barrier::Recheck;

std::string refusal(Mode mode, const Barrier& barrier, const Recheck& recheck,
                    std::size_t workers = 8) {
  auto valid = check(mode, barrier, recheck, workers);
  return valid ? "accepted" : valid.error().message;
}

TEST(Mode, ParsesItsOwnNames) {
  for (const Mode mode : {Mode::central, Mode::hybrid, Mode::peer})
    EXPECT_EQ(*parse_mode(print(mode)), mode);
}

TEST(Mode, RefusesAnUnknownNameAndSuggestsTheNearest) {
  EXPECT_EQ(parse_mode("peers").error().message,
            "mode: 'peers' is unknown; did you mean 'peer'? valid: central, hybrid, peer");
}

TEST(Mode, SaysWhichMembersHoldTheModelAndTheSteps) {
  EXPECT_TRUE(has_servers(Mode::central) && keeps_steps_centrally(Mode::central));
  EXPECT_TRUE(has_servers(Mode::hybrid) && !keeps_steps_centrally(Mode::hybrid));
  EXPECT_TRUE(!has_servers(Mode::peer) && !keeps_steps_centrally(Mode::peer));
}

TEST(Mode, CentralModeAcceptsEveryBarrier) {
  for (const char* text : {"bsp", "ssp:s=4", "asp", "pbsp:beta=7", "pssp:s=4,beta=2"})
    EXPECT_EQ(refusal(Mode::central, *barrier::parse(text), default_recheck(Mode::central)),
              "accepted");
}

TEST(Mode, RefusesBarriersOverAllWorkersWithoutACoordinator) {
  for (const Mode mode : {Mode::hybrid, Mode::peer}) {
    for (const char* text : {"asp", "ssp:s=inf", "pbsp:beta=7", "pssp:s=4,beta=2"})
      EXPECT_EQ(refusal(mode, *barrier::parse(text), default_recheck(mode)), "accepted");
    EXPECT_EQ(refusal(mode, *barrier::parse("ssp:s=4"), default_recheck(mode)),
              "barrier ssp:s=4 needs to see every worker's step, which no one does in " +
                  print(mode) +
                  " mode; valid there: pbsp:beta=2, pssp:s=4,beta=2, asp, "
                  "pdssp:low=3,high=15,beta=2, pfluent:s=4,p=0.5,beta=2, pquorum:q=0.9,beta=2, "
                  "tuned:waiting=5%, "
                  "or use mode central");
  }
}

TEST(Mode, ListsBarriersThatAJobOfThisSizeCanHave) {
  EXPECT_TRUE(refusal(Mode::peer, {}, default_recheck(Mode::peer), 2)
                  .ends_with("valid there: pbsp:beta=1, pssp:s=4,beta=1, asp, "
                             "pdssp:low=3,high=15,beta=1, pfluent:s=4,p=0.5,beta=1, "
                             "pquorum:q=0.9,beta=1, tuned:waiting=5%, or use mode central"));
}

TEST(Mode, RefusesRecheckAtArrivalsWithoutACoordinator) {
  EXPECT_EQ(refusal(Mode::peer, barrier::sampled(barrier::Bsp{}, 2), Recheck::central()),
            "recheck arrival works in central mode only; valid in peer mode: notify, "
            "interval:5ms, notify+interval:auto");
}

TEST(Mode, RefusesRechecksWithoutTimeBetweenThem) {
  for (const Mode mode : {Mode::central, Mode::hybrid, Mode::peer})
    for (const int ns : {0, -5})
      EXPECT_EQ(refusal(mode, barrier::sampled(barrier::Bsp{}, 2),
                        {.interval = std::chrono::nanoseconds{ns}}),
                "recheck: the interval must be longer than 0; valid: interval:5ms, interval:auto");
}

/// The end of a longer interval would overflow, and the worker would draw again all the time.
TEST(Mode, RefusesRechecksThatNeverCome) {
  for (const Mode mode : {Mode::central, Mode::hybrid, Mode::peer})
    EXPECT_EQ(refusal(mode, barrier::sampled(barrier::Bsp{}, 2),
                      {.interval = std::chrono::nanoseconds::max()}),
              "recheck: the interval is too long; valid: at most 285 years");
}

TEST(Mode, RefusesWeightsWhereACoordinatorDraws) {
  for (const char* text : {"pssp:s=4,beta=2,draw=availability", "pbsp:beta=7,draw=speed"})
    for (const Mode mode : {Mode::hybrid, Mode::peer})
      EXPECT_EQ(refusal(mode, *barrier::parse(text), default_recheck(mode)), "accepted");
  EXPECT_EQ(refusal(Mode::central, *barrier::parse("pssp:s=4,beta=2,draw=speed"),
                    default_recheck(Mode::central)),
            "barrier pssp:s=4,beta=2,draw=speed: draw=speed needs workers that ask each other, "
            "which they do not in central mode; valid there: pssp:s=4,beta=2, or use mode hybrid "
            "or peer");
}

TEST(Mode, RefusesJobsWithoutWorkersAndSamplesTooLarge) {
  EXPECT_EQ(refusal(Mode::central, {}, Recheck::central(), 0),
            "workers=0: a job needs at least 1 worker");
  EXPECT_EQ(refusal(Mode::peer, barrier::sampled(barrier::Bsp{}, 8), Recheck::distributed()),
            "barrier pbsp:beta=8: beta=8, but each of 8 workers has 7 others; "
            "valid: beta = 0 to 7, as in pbsp:beta=7");
}

}  // namespace
}  // namespace starling::core
