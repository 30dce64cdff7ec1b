/// Weather between two transports, and between nodes.
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

/// Frames go through a forwarder; each says its number.
class Through : public testing::Test {
 protected:
  Through() {
    receiver_ = wire::Transport::open({}, [this](const wire::Incoming& incoming) {
                  const std::lock_guard lock{mutex_};
                  ++came_[{reinterpret_cast<const char*>(incoming.frame.head.data()),
                           incoming.frame.head.size()}];
                }).value();
    sender_ = wire::Transport::open({}, [](const wire::Incoming&) {}).value();
    const std::string& address = receiver_->address();
    forwarder_.lead_to(
        static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1))));
  }

  void send(const std::string& text) {
    wire::Frame frame;
    for (const char c : text) frame.head.push_back(static_cast<std::byte>(c));
    sender_->send({"tcp://127.0.0.1:" + std::to_string(forwarder_.port()), std::nullopt},
                  wire::TrafficClass::control, std::move(frame));
  }
  std::size_t came(const std::string& text) {
    const std::lock_guard lock{mutex_};
    const auto found = came_.find(text);
    return found == came_.end() ? 0 : found->second;
  }
  std::size_t all() {
    const std::lock_guard lock{mutex_};
    return came_.size();
  }
  /// Says it again and again, as channels do.
  bool get_through(const std::string& text) {
    return wait_until([&] {
      send(text);
      std::this_thread::sleep_for(20ms);
      return came(text) > 0;
    });
  }

  Forwarder forwarder_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> came_;
  std::unique_ptr<wire::Transport> receiver_;
  std::unique_ptr<wire::Transport> sender_;
};

TEST_F(Through, FramesComeLateInBadWeather) {
  ASSERT_TRUE(get_through("first"));
  forwarder_.set({.delay = 300ms, .jitter = 50ms});
  const auto began = Clock::now();
  send("late");
  ASSERT_TRUE(wait_until([&] { return came("late") > 0; }));
  EXPECT_GE(Clock::now() - began, 300ms);
}

TEST_F(Through, FramesComeSlowlyWhereThereIsLittleRoom) {
  ASSERT_TRUE(get_through("first"));
  forwarder_.set({.bytes_per_s = 100'000});
  const auto began = Clock::now();
  for (int i = 0; i < 10; ++i) send(std::to_string(i) + std::string(10'000, 'x'));
  ASSERT_TRUE(wait_until([&] { return all() == 11; }));
  EXPECT_GE(Clock::now() - began, 500ms);
}

TEST_F(Through, WhatIsSilentIsHeardWhenItSpeaksAgain) {
  ASSERT_TRUE(get_through("first"));
  forwarder_.set({.silent = true});
  send("held");
  // Nothing that is sent later could tell, for in the silence it would not come either.
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(came("held"), 0U);
  forwarder_.set({});
  EXPECT_TRUE(wait_until([&] { return came("held") > 0; }));
}

TEST_F(Through, ConnectionsAreMadeAgainAfterACut) {
  ASSERT_TRUE(get_through("first"));
  forwarder_.set({.cut = true});
  const auto before = forwarder_.refused();
  send("cut");
  // The first of these attempts may have begun before the frame was sent.
  ASSERT_TRUE(wait_until([&] { return forwarder_.refused() > before + 1; }))
      << "the sender tries again";
  EXPECT_EQ(came("cut"), 0U);
  forwarder_.set({});
  EXPECT_TRUE(get_through("healed"));
  forwarder_.break_all();
  EXPECT_TRUE(get_through("again"));
}

TEST_F(Through, NoFrameComesTwiceOverConnectionsThatBreakAtRandom) {
  forwarder_.set({.breaking = 0.05});
  for (int i = 0; i < 300; ++i) {
    send(std::to_string(i));
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(wait_until([&] { return forwarder_.broken() > 0; }));
  forwarder_.set({});
  EXPECT_TRUE(get_through("whole"));
  for (int i = 0; i < 300; ++i) EXPECT_LE(came(std::to_string(i)), 1U);
}

TEST_F(Through, TurnedBitsEndNothing) {
  forwarder_.set({.damaging = 0.3});
  for (int i = 0; i < 300; ++i) {
    send(std::to_string(i) + std::string(100, 'x'));
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_TRUE(wait_until([&] { return forwarder_.damaged() > 0; }));
  forwarder_.set({});
  forwarder_.break_all();
  EXPECT_TRUE(get_through("well"));
}

}  // namespace
}  // namespace starling::hosts
