/// A channel by itself; tests/scenarios/channel.txt shows its protocol, and
/// tests/engine/sim/channel_test.cpp the faults that it withstands.
#include "starling/engine/core/channel/channel.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(ResendTime, IsTheRoundTripAndFourTimesItsDeviation) {
  ResendTime time{50ms, 5ms, 1s};
  EXPECT_EQ(time.wait(), 50ms) << "nothing is known yet";
  time.measured(16ms);
  EXPECT_EQ(time.wait(), 16ms + 4 * 8ms);
  time.measured(24ms);
  EXPECT_EQ(time.wait(), 17ms + 4 * 8ms);
}

TEST(ResendTime, DoublesAtEachSilenceUpToItsBound) {
  ResendTime time{50ms, 5ms, 1s};
  time.silence();
  EXPECT_EQ(time.wait(), 100ms);
  for (int i = 0; i < 100; ++i) time.silence();
  EXPECT_EQ(time.wait(), 1s);
  time.heard();
  EXPECT_EQ(time.wait(), 50ms);
}

TEST(ResendTime, IsNeverShorterThanItsBound) {
  ResendTime time{50ms, 5ms, 1s};
  for (int i = 0; i < 100; ++i) time.measured(1us);
  EXPECT_EQ(time.wait(), 5ms);
}

class OneEnd : public testing::Test {
 protected:
  [[nodiscard]] ChannelContext<int> at(Time now) { return {now, effects_}; }
  /// How many payloads went out since last asked.
  std::size_t sent() {
    const auto count = std::ranges::count_if(effects_, [](const auto& effect) {
      const auto* out = std::get_if<Transmit<int>>(&effect);
      return out != nullptr && out->packet.payload;
    });
    effects_.clear();
    return static_cast<std::size_t>(count);
  }

  ChannelEffects<int> effects_;
};

TEST_F(OneEnd, KeepsAWindowUnderWayAndAQueueBehindItAndRefusesMore) {
  Channel<int> channel{1, 1, {.window = 3, .queue = 2}};
  EXPECT_EQ(channel.room(), 5U);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(channel.send(at(0ms), int{i}));
  EXPECT_EQ(sent(), 3U);
  EXPECT_EQ(channel.in_flight(), 3U);
  EXPECT_EQ(channel.waiting(), 2U);
  EXPECT_EQ(channel.room(), 0U);
  EXPECT_FALSE(channel.send(at(0ms), 5));
  channel.on(at(1ms), {.from = 1, .to = 1, .acknowledged = 2});
  EXPECT_EQ(sent(), 2U) << "the window moves on";
  EXPECT_EQ(channel.room(), 2U);
  channel.on(at(2ms), {.from = 1, .to = 1, .acknowledged = 5});
  EXPECT_TRUE(channel.settled());
}

/// A payload that keeps `bytes` bytes in memory.
struct Tensor {
  std::size_t bytes;
};
std::size_t payload_bytes(const Tensor& tensor) { return tensor.bytes; }

TEST(Window, HasABoundInBytesButForOnePayloadThatIsLarger) {
  ChannelEffects<Tensor> effects;
  const ChannelContext<Tensor> now{0ms, effects};
  Channel<Tensor> channel{1, 1, {.window_bytes = 100}};
  for (const std::size_t bytes : {60U, 40U, 1U, 500U, 0U})
    ASSERT_TRUE(channel.send(now, Tensor{bytes}));
  EXPECT_EQ(channel.in_flight(), 2U);
  EXPECT_EQ(channel.bytes_in_flight(), 100U);
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 1});
  EXPECT_EQ(channel.bytes_in_flight(), 41U) << "500 bytes wait, and what is behind them";
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 3});
  EXPECT_EQ(channel.bytes_in_flight(), 500U);
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 4});
  EXPECT_EQ(channel.in_flight(), 1U);
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 5});
  EXPECT_TRUE(channel.settled());
  EXPECT_EQ(channel.bytes_in_flight(), 0U);
}

TEST_F(OneEnd, BelievesNoAcknowledgementOfWhatWasNotSent) {
  Channel<int> channel{1, 1};
  ASSERT_TRUE(channel.send(at(0ms), 7));
  channel.on(at(1ms), {.from = 1, .to = 1, .acknowledged = 2});
  channel.on(at(1ms), {.from = 1, .to = 1, .held = ~std::uint64_t{0}});
  EXPECT_EQ(channel.in_flight(), 1U);
}

TEST_F(OneEnd, KeepsNoMorePayloadsThanAWindowHolds) {
  Channel<int> channel{1, 1};
  for (std::uint64_t number = 2; number < 1000; ++number)
    channel.on(at(0ms), {.from = 1, .to = 1, .sequence = number, .payload = 0});
  EXPECT_EQ(channel.early(), 63U);
}

TEST_F(OneEnd, AcknowledgesHalfAWindowAtOnce) {
  Channel<int> channel{1, 1, {.window = 4}};
  channel.on(at(0ms), {.from = 1, .to = 1, .sequence = 1, .payload = 1});
  EXPECT_EQ(effects_.size(), 2U) << "delivery and timer";
  effects_.clear();
  channel.on(at(0ms), {.from = 1, .to = 1, .sequence = 2, .payload = 2});
  ASSERT_EQ(effects_.size(), 2U);
  EXPECT_EQ(std::get<Transmit<int>>(effects_[1]).packet.acknowledged, 2U);
}

}  // namespace
}  // namespace starling::core
