/// Tests how the inbox limits the reading from newcomers: connections that have never sent a
/// message.
#include "starling/actor/wire/inbox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "starling/actor/wire/frame.hpp"
#include "tests/actor/wire/raw_connection.hpp"
#include "tests/waiting.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t body_bytes = std::size_t{256} << 10U;

/// Returns a message with an empty head and a body of `body_bytes` bytes.
std::string message() { return literal("\1\0\2\0\0\0\0\0\4\0\0") + std::string(body_bytes, 'x'); }

class InboxTest : public testing::Test {
 protected:
  void SetUp() override {
    InboxOptions options;
    options.listen = "tcp://127.0.0.1:*";
    options.rules.part_bytes_max = std::size_t{8} << 20U;
    options.unfinished_bytes_max = std::size_t{64} << 20U;
    options.open_max = 1000;
    options.handshakes_max = 1000;
    auto opened = Inbox::open(std::move(options));
    ASSERT_TRUE(opened) << opened.error().message;
    inbox_ = *std::move(opened);
  }

  /// Receives messages without calling maintain(): waits for `count_min` messages, and receives for
  /// 200 ms more, because no message shows that it is the last. Returns the number of messages.
  std::size_t receive_without_maintenance(std::size_t count_min = 0) {
    std::size_t count = 0;
    const auto receive_available = [&] {
      while (const auto next = inbox_->next()) {
        EXPECT_EQ(next->body.filled().size(), body_bytes);
        ++count;
      }
    };
    const auto has_enough = [&] {
      receive_available();
      return count >= count_min;
    };
    EXPECT_TRUE(wait_until(has_enough)) << count << " of " << count_min << " messages received";
    for (const auto end = Clock::now() + 200ms; Clock::now() < end;) {
      std::this_thread::sleep_for(1ms);
      receive_available();
    }
    return count;
  }

  std::unique_ptr<Inbox> inbox_;
};

TEST_F(InboxTest, BoundsTheBytesReadFromNewcomersInAPeriod) {
  constexpr std::size_t newcomers = 40;
  std::vector<RawConnection> connections;
  for (std::size_t i = 0; i < newcomers; ++i) {
    connections.emplace_back(inbox_->address());
    const std::string hello = greeting("NULL") + ready;
    ASSERT_EQ(connections.back().send(hello), hello.size());
  }
  (void)receive_without_maintenance();  // handles the handshakes
  for (RawConnection& connection : connections)
    ASSERT_EQ(connection.send(message()), message().size());

  std::size_t received = receive_without_maintenance();
  EXPECT_LE(received, 8U) << "a period allows 2 MiB, and each message has 256 KiB";
  for (int periods = 1; received < newcomers && periods < 100; ++periods) {
    EXPECT_LE(inbox_->maintain(), 50ms) << "suspended newcomers are read again soon";
    received += receive_without_maintenance();
  }
  EXPECT_EQ(received, newcomers);
  EXPECT_EQ(inbox_->refused(), 0U);

  // A connection that has sent a message is no longer a newcomer.
  for (RawConnection& connection : connections)
    ASSERT_EQ(connection.send(message()), message().size());
  EXPECT_EQ(receive_without_maintenance(newcomers), newcomers);
}

TEST_F(InboxTest, ClosesANewcomerThatLeftWhileItWasSuspended) {
  std::vector<RawConnection> connections;
  for (std::size_t i = 0; i < 20; ++i) {
    connections.emplace_back(inbox_->address());
    const std::string hello = greeting("NULL") + ready;
    ASSERT_EQ(connections.back().send(hello), hello.size());
  }
  (void)receive_without_maintenance();
  for (RawConnection& connection : connections)
    ASSERT_EQ(connection.send(message().substr(0, body_bytes)), body_bytes);
  EXPECT_EQ(receive_without_maintenance(), 0U);
  connections.clear();
  for (int periods = 0; periods < 10; ++periods) {
    (void)inbox_->maintain();
    EXPECT_EQ(receive_without_maintenance(), 0U);
  }
  EXPECT_EQ(inbox_->maintain(), 1s) << "no newcomer is suspended";
}

TEST(ZmtpReceiver, NamesTheVersionOfItsFramesInItsGreeting) {
  const ZmtpRules rules;
  ZmtpReceiver receiver{rules};
  const Signature client = own_signature();
  std::span<const std::byte> bytes = client;
  ASSERT_FALSE(receiver.take(bytes));
  const Bytes greeting = receiver.take_answer();
  ASSERT_EQ(greeting.size(), 64U);
  Signature server{};
  std::ranges::copy(std::span{greeting}.first(server.size()), server.begin());
  EXPECT_EQ(frame_version_of(server), unsigned{version});
}

}  // namespace
}  // namespace starling::wire
