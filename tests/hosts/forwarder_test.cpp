/// Tests Forwarder with two transports that are connected through it.
#include "tests/hosts/forwarder.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "starling/actor/wire/transport.hpp"
#include "tests/waiting.hpp"

namespace starling::hosts {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Sends frames through a forwarder, and counts how often each one is received.
class ForwarderTest : public testing::Test {
 protected:
  ForwarderTest() {
    receiver_ = wire::Transport::open({}, [this](const wire::IncomingFrame& incoming) {
                  const std::lock_guard lock{mutex_};
                  ++received_[{reinterpret_cast<const char*>(incoming.frame.head.data()),
                               incoming.frame.head.size()}];
                }).value();
    sender_ = wire::Transport::open({}, [](const wire::IncomingFrame&) {}).value();
    const std::string& address = receiver_->address();
    forwarder_.forward_to(
        static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1))));
  }

  void send(const std::string& text) {
    wire::Frame frame;
    for (const char c : text) frame.head.push_back(static_cast<std::byte>(c));
    sender_->send({"tcp://127.0.0.1:" + std::to_string(forwarder_.port()), std::nullopt},
                  wire::TrafficClass::control, std::move(frame));
  }
  /// Returns how often a frame was received.
  std::size_t received(const std::string& text) {
    const std::lock_guard lock{mutex_};
    const auto found = received_.find(text);
    return found == received_.end() ? 0 : found->second;
  }
  /// Returns how many different frames were received.
  std::size_t distinct_frames() {
    const std::lock_guard lock{mutex_};
    return received_.size();
  }
  /// Sends the frame again and again, as channels do, until it is received.
  bool send_until_received(const std::string& text) {
    return wait_until([&] {
      send(text);
      std::this_thread::sleep_for(20ms);
      return received(text) > 0;
    });
  }

  Forwarder forwarder_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> received_;
  std::unique_ptr<wire::Transport> receiver_;
  std::unique_ptr<wire::Transport> sender_;
};

TEST_F(ForwarderTest, DelaysFrames) {
  ASSERT_TRUE(send_until_received("first"));
  forwarder_.set({.delay = 300ms, .jitter = 50ms});
  const auto began = Clock::now();
  send("late");
  ASSERT_TRUE(wait_until([&] { return received("late") > 0; }));
  EXPECT_GE(Clock::now() - began, 300ms);
}

TEST_F(ForwarderTest, LimitsTheBytesPerSecond) {
  ASSERT_TRUE(send_until_received("first"));
  forwarder_.set({.bytes_per_s = 100'000});
  const auto began = Clock::now();
  for (int i = 0; i < 10; ++i) send(std::to_string(i) + std::string(10'000, 'x'));
  ASSERT_TRUE(wait_until([&] { return distinct_frames() == 11; }));
  EXPECT_GE(Clock::now() - began, 500ms);
}

TEST_F(ForwarderTest, DeliversTheFramesOfASilenceAfterIt) {
  ASSERT_TRUE(send_until_received("first"));
  forwarder_.set({.silent = true});
  send("held");
  // No event shows that the frame is held: a later frame would be held too. So the test waits.
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(received("held"), 0U);
  forwarder_.set({});
  EXPECT_TRUE(wait_until([&] { return received("held") > 0; }));
}

TEST_F(ForwarderTest, LetsTheSenderConnectAgainAfterACut) {
  ASSERT_TRUE(send_until_received("first"));
  forwarder_.set({.cut = true});
  const auto before = forwarder_.refused();
  send("cut");
  // The sender may have begun the first of the two attempts before it sent this frame.
  ASSERT_TRUE(wait_until([&] { return forwarder_.refused() > before + 1; }))
      << "the sender tries again";
  EXPECT_EQ(received("cut"), 0U);
  forwarder_.set({});
  EXPECT_TRUE(send_until_received("healed"));
  forwarder_.break_all();
  EXPECT_TRUE(send_until_received("again"));
}

TEST_F(ForwarderTest, BreaksConnectionsWithoutRepeatingFrames) {
  forwarder_.set({.breaking = 0.05});
  for (int i = 0; i < 300; ++i) {
    send(std::to_string(i));
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(wait_until([&] { return forwarder_.broken() > 0; }));
  forwarder_.set({});
  EXPECT_TRUE(send_until_received("whole"));
  for (int i = 0; i < 300; ++i) EXPECT_LE(received(std::to_string(i)), 1U);
}

TEST_F(ForwarderTest, TransportsSurviveFlippedBits) {
  forwarder_.set({.corrupted_share = 0.3});
  for (int i = 0; i < 300; ++i) {
    send(std::to_string(i) + std::string(100, 'x'));
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(wait_until([&] { return forwarder_.corrupted_pieces() > 0; }));
  forwarder_.set({});
  forwarder_.break_all();
  EXPECT_TRUE(send_until_received("well"));
}

}  // namespace
}  // namespace starling::hosts
