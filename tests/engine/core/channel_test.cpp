/// Tests one end of a channel. tests/scenarios/channel.txt shows the protocol between two ends, and
/// tests/engine/sim/channel_test.cpp tests channels over a network with faults.
#include "starling/engine/core/channel/channel.hpp"

#include <gtest/gtest.h>

namespace starling::core {
namespace {

using namespace std::chrono_literals;

TEST(ResendTimeout, IsTheRoundTripPlusFourTimesItsDeviation) {
  ResendTimeout timeout{50ms, 5ms, 1s};
  EXPECT_EQ(timeout.get(), 50ms) << "no round trip is measured yet";
  timeout.on_round_trip(16ms);
  EXPECT_EQ(timeout.get(), 16ms + 4 * 8ms);
  timeout.on_round_trip(24ms);
  EXPECT_EQ(timeout.get(), 17ms + 4 * 8ms);
}

TEST(ResendTimeout, DoublesAtEachTimeoutUpToItsMaximum) {
  ResendTimeout timeout{50ms, 5ms, 1s};
  timeout.on_timeout();
  EXPECT_EQ(timeout.get(), 100ms);
  for (int i = 0; i < 100; ++i) timeout.on_timeout();
  EXPECT_EQ(timeout.get(), 1s);
  timeout.on_acknowledged();
  EXPECT_EQ(timeout.get(), 50ms);
}

TEST(ResendTimeout, ExceedsTheAgeOfAResentPayloadUntilARoundTripIsMeasured) {
  ResendTimeout timeout{50ms, 5ms, 1s};
  timeout.on_resent_acknowledged(200ms);
  EXPECT_EQ(timeout.get(), 300ms);
  timeout.on_resent_acknowledged(60ms);
  EXPECT_EQ(timeout.get(), 90ms);
  timeout.on_resent_acknowledged(1ms);
  EXPECT_EQ(timeout.get(), 50ms);
  timeout.on_resent_acknowledged(1h);
  EXPECT_EQ(timeout.get(), 1s);
  timeout.on_round_trip(2ms);
  EXPECT_EQ(timeout.get(), 2ms + 4 * 1ms);
  timeout.on_resent_acknowledged(200ms);
  EXPECT_EQ(timeout.get(), 2ms + 4 * 1ms) << "the payload may have been lost";
}

TEST(ResendTimeout, IsNeverShorterThanItsMinimum) {
  ResendTimeout timeout{50ms, 5ms, 1s};
  for (int i = 0; i < 100; ++i) timeout.on_round_trip(1us);
  EXPECT_EQ(timeout.get(), 5ms);
}

class ChannelEnd : public testing::Test {
 protected:
  [[nodiscard]] ChannelContext<int> at(Time now) { return {now, effects_}; }
  /// Returns how many payloads were sent since the last call.
  std::size_t count_sent() {
    const auto count = std::ranges::count_if(effects_, [](const auto& effect) {
      const auto* out = std::get_if<Transmit<int>>(&effect);
      return out != nullptr && out->packet.payload;
    });
    effects_.clear();
    return static_cast<std::size_t>(count);
  }

  ChannelEffects<int> effects_;
};

TEST_F(ChannelEnd, SendsAWindowQueuesTheRestAndRefusesWhenTheQueueIsFull) {
  Channel<int> channel{1, 1, {.window = 3, .queue = 2}};
  EXPECT_EQ(channel.free_capacity(), 5U);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(channel.send(at(0ms), int{i}));
  EXPECT_EQ(count_sent(), 3U);
  EXPECT_EQ(channel.in_flight(), 3U);
  EXPECT_EQ(channel.queued(), 2U);
  EXPECT_EQ(channel.free_capacity(), 0U);
  EXPECT_FALSE(channel.send(at(0ms), 5));
  channel.on(at(1ms), {.from = 1, .to = 1, .acknowledged = 2});
  EXPECT_EQ(count_sent(), 2U) << "the window moves by two payloads";
  EXPECT_EQ(channel.free_capacity(), 2U);
  channel.on(at(2ms), {.from = 1, .to = 1, .acknowledged = 5});
  EXPECT_TRUE(channel.is_settled());
}

/// A payload that keeps `bytes` bytes in memory.
struct Tensor {
  std::size_t bytes;
};
std::size_t payload_bytes(const Tensor& tensor) { return tensor.bytes; }

TEST(Channel, LimitsTheBytesInFlightButSendsALargerPayloadAlone) {
  ChannelEffects<Tensor> effects;
  const ChannelContext<Tensor> now{0ms, effects};
  Channel<Tensor> channel{1, 1, {.window_bytes = 100}};
  for (const std::size_t bytes : {60U, 40U, 1U, 500U, 0U})
    ASSERT_TRUE(channel.send(now, Tensor{bytes}));
  EXPECT_EQ(channel.in_flight(), 2U);
  EXPECT_EQ(channel.bytes_in_flight(), 100U);
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 1});
  EXPECT_EQ(channel.bytes_in_flight(), 41U) << "the payload of 500 bytes and the one after it wait";
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 3});
  EXPECT_EQ(channel.bytes_in_flight(), 500U);
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 4});
  EXPECT_EQ(channel.in_flight(), 1U);
  channel.on(now, {.from = 1, .to = 1, .acknowledged = 5});
  EXPECT_TRUE(channel.is_settled());
  EXPECT_EQ(channel.bytes_in_flight(), 0U);
}

TEST_F(ChannelEnd, LearnsARoundTripThatIsLongerThanTheTimeout) {
  Channel<int> channel{1, 1};
  std::uint64_t sequence = 0;
  /// Returns how often `count` payloads are sent, if each is acknowledged after `round_trip`.
  const auto send = [&](int count, Time round_trip) {
    std::size_t sent = 0;
    for (int i = 0; i < count; ++i) {
      const Time begin = ++sequence * 1s;
      EXPECT_TRUE(channel.send(at(begin), 7));
      for (Time after = 1ms; after < round_trip; after += 1ms) channel.on_timer(at(begin + after));
      channel.on(at(begin + round_trip), {.from = 1, .to = 1, .acknowledged = sequence});
      sent += count_sent();
    }
    return sent;
  };
  EXPECT_EQ(send(10, 300ms), 10U + 2U) << "the first is sent again after 50 and 150 ms";
  EXPECT_EQ(send(100, 1ms), 100U);
  EXPECT_GT(send(10, 300ms), 20U) << "after 5 ms and more, until the channel notices";
  EXPECT_EQ(send(10, 300ms), 10U);
}

/// After a pause of the other side, the timeout is that of before.
TEST_F(ChannelEnd, KeepsTheTimeoutAfterAPauseWithManyPayloadsInFlight) {
  Channel<int> channel{1, 1};
  std::uint64_t sequence = 0;
  for (Time now = 1ms; now <= 50ms; now += 1ms) {
    ASSERT_TRUE(channel.send(at(now), 7));
    channel.on(at(now + 1ms), {.from = 1, .to = 1, .acknowledged = ++sequence});
  }
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(channel.send(at(100ms), 7));
  for (Time now = 101ms; now < 400ms; now += 1ms) channel.on_timer(at(now));
  channel.on(at(400ms), {.from = 1, .to = 1, .acknowledged = sequence + 10});
  count_sent();
  ASSERT_TRUE(channel.send(at(500ms), 7));
  for (Time now = 501ms; now <= 520ms; now += 1ms) channel.on_timer(at(now));
  EXPECT_GT(count_sent(), 1U) << "it is sent again within 20 ms";
}

/// All payloads that follow it are acknowledged before the timeout.
TEST_F(ChannelEnd, ResendsALostPayloadWhileLaterOnesAreAcknowledged) {
  Channel<int> channel{1, 1};
  std::uint64_t received = 0;  // selective acknowledgements: all but the first payload
  for (Time now = 0ms; now < 100ms; now += 4ms) {
    ASSERT_TRUE(channel.send(at(now), 7));
    if (now > 0ms) received = received << 1U | 1U;
    for (Time after = 1ms; after < 4ms; after += 1ms) {
      channel.on(at(now + after), {.from = 1, .to = 1, .selective_acks = received});
      channel.on_timer(at(now + after));
    }
  }
  EXPECT_TRUE(std::ranges::any_of(effects_, [](const auto& effect) {
    const auto* out = std::get_if<Transmit<int>>(&effect);
    return out != nullptr && out->packet.sequence == 1 && out->packet.is_resend;
  }));
}

TEST_F(ChannelEnd, IgnoresAcknowledgementsOfPayloadsThatWereNotSent) {
  Channel<int> channel{1, 1};
  ASSERT_TRUE(channel.send(at(0ms), 7));
  channel.on(at(1ms), {.from = 1, .to = 1, .acknowledged = 2});
  channel.on(at(1ms), {.from = 1, .to = 1, .selective_acks = ~std::uint64_t{0}});
  EXPECT_EQ(channel.in_flight(), 1U);
}

TEST_F(ChannelEnd, StoresAtMostAWindowOfPayloadsThatArriveOutOfOrder) {
  Channel<int> channel{1, 1};
  for (std::uint64_t sequence = 2; sequence < 1000; ++sequence)
    channel.on(at(0ms), {.from = 1, .to = 1, .sequence = sequence, .payload = 0});
  EXPECT_EQ(channel.out_of_order(), 63U);
}

TEST_F(ChannelEnd, AcknowledgesHalfAWindowAtOnce) {
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
