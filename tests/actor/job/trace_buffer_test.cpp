/// Tests the buffer in which a node keeps the intervals of its workers.
#include "starling/actor/job/trace_buffer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

/// Adds the intervals number `from` to `to` - 1. The step of an interval is its number.
void add(TraceBuffer& buffer, core::Step from, core::Step to) {
  for (core::Step step = from; step < to; ++step)
    buffer.add(3, {1us * step, 1us * (step + 1), step, std::nullopt, Activity::read});
}

/// Expects that `part` has the intervals `first` to `last`, in this order.
void expect_numbers(const TraceBuffer::Part& part, core::Step first, core::Step last) {
  EXPECT_EQ(part.first, first);
  ASSERT_EQ(part.intervals.size(), last - first + 1);
  for (std::size_t i = 0; i < part.intervals.size(); ++i) {
    EXPECT_EQ(part.intervals[i].interval.step, first + i);
    EXPECT_EQ(part.intervals[i].worker, 3U);
  }
}

TEST(TraceBuffer, ReturnsTheIntervalsFromANumberOnAgainAndAgain) {
  TraceBuffer buffer;
  EXPECT_TRUE(buffer.read(0).intervals.empty());
  add(buffer, 0, 1000);
  for (int i = 0; i < 2; ++i) {
    expect_numbers(buffer.read(0), 0, 999);
    expect_numbers(buffer.read(700), 700, 999);
  }
  EXPECT_TRUE(buffer.read(1000).intervals.empty());
  EXPECT_EQ(buffer.read(1000).first, 1000U);
  EXPECT_EQ(buffer.read(5000).first, 1000U) << "there are no such intervals";
}

TEST(TraceBuffer, DropsTheOldestIntervals) {
  TraceBuffer buffer{100};
  add(buffer, 0, 250);
  expect_numbers(buffer.read(0), 150, 249);
  expect_numbers(buffer.read(200), 200, 249);
}

TEST(TraceBuffer, BoundsWhatOneReadReturns) {
  TraceBuffer buffer;
  add(buffer, 0, TraceBuffer::read_max + 10);
  expect_numbers(buffer.read(0), 0, TraceBuffer::read_max - 1);
  expect_numbers(buffer.read(TraceBuffer::read_max), TraceBuffer::read_max,
                 TraceBuffer::read_max + 9);
}

/// While it is read, a full buffer drops intervals; a read still has no gap.
TEST(TraceBuffer, ReadsWithoutGapsWhileIntervalsAreAdded) {
  TraceBuffer buffer{1000};
  constexpr core::Step count = 100'000;
  std::thread worker{[&] { add(buffer, 0, count); }};
  std::uint64_t next = 0;
  while (next < count) {
    const auto part = buffer.read(next);
    EXPECT_GE(part.first, next);
    for (std::size_t i = 0; i < part.intervals.size(); ++i)
      ASSERT_EQ(part.intervals[i].interval.step, part.first + i);
    next = part.first + part.intervals.size();
  }
  worker.join();
  EXPECT_EQ(next, count);
}

}  // namespace
}  // namespace starling::actor
