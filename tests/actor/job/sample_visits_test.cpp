/// Tests for how long samples are not visited.
#include "starling/actor/job/sample_visits.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

TEST(SampleVisits, MeasureTheLongestTimeBetweenTwoVisits) {
  core::WorkShare share;
  share.order =
      std::make_shared<const models::SampleOrder>(models::first_order(10, 1, 10, false, 1));
  share.index = 0;
  const auto visit = [&](SampleVisits& visits, std::uint64_t taken, std::size_t count,
                         core::Time now) {
    share.taken = taken;
    visits.add(share, count, now);
  };
  SampleVisits visits{10};
  EXPECT_EQ(visits.longest_gap(0ms), 0ms);
  visit(visits, 0, 10, 30ms);
  EXPECT_EQ(visits.longest_gap(30ms), 30ms) << "from the start to the first visit";
  visit(visits, 10, 4, 80ms);
  EXPECT_EQ(visits.longest_gap(80ms), 50ms);
  EXPECT_EQ(visits.longest_gap(130ms), 100ms) << "six samples wait since 30 ms";
  visit(visits, 14, 10, 90ms);
  EXPECT_EQ(visits.longest_gap(90ms), 60ms);
}

TEST(SampleVisits, CountASampleThatWasNeverVisited) {
  const SampleVisits visits{3};
  EXPECT_EQ(visits.longest_gap(5ms), 5ms);
}

}  // namespace
}  // namespace starling::actor
