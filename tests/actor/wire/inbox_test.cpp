/// How long connections that have never brought a message are read.
#include "starling/actor/wire/inbox.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/actor/wire/line.hpp"
#include "tests/waiting.hpp"

namespace starling::wire {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t body_bytes = std::size_t{256} << 10U;

/// A message of an empty head and a body of that size.
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

  /// Messages that come while it is not tended: `least` of them, and those of the next fifth of a
  /// second. Every connection has its own turns, so no message tells that no other will come.
  std::size_t take_untended(std::size_t least = 0) {
    std::size_t count = 0;
    const auto take_all = [&] {
      while (const auto next = inbox_->next()) {
        EXPECT_EQ(next->body.filled().size(), body_bytes);
        ++count;
      }
    };
    const auto has_least = [&] {
      take_all();
      return count >= least;
    };
    EXPECT_TRUE(wait_until(has_least)) << count << " of " << least << " messages came";
    for (const auto end = Clock::now() + 200ms; Clock::now() < end;) {
      std::this_thread::sleep_for(1ms);
      take_all();
    }
    return count;
  }

  std::unique_ptr<Inbox> inbox_;
};

TEST_F(InboxTest, ReadsABoundedNumberOfNewcomersBytesAtATime) {
  constexpr std::size_t newcomers = 40;
  std::vector<Line> lines;
  for (std::size_t i = 0; i < newcomers; ++i) {
    lines.emplace_back(inbox_->address());
    const std::string hello = greeting("NULL") + ready;
    ASSERT_EQ(lines.back().send(hello), hello.size());
  }
  (void)take_untended();  // their handshakes
  for (Line& line : lines) ASSERT_EQ(line.send(message()), message().size());

  std::size_t came = take_untended();
  EXPECT_LE(came, 8U) << "2 MiB of 256 KiB each";
  for (int periods = 1; came < newcomers && periods < 100; ++periods) {
    EXPECT_LE(inbox_->tend(), 50ms) << "who waits is read again soon";
    came += take_untended();
  }
  EXPECT_EQ(came, newcomers);
  EXPECT_EQ(inbox_->refused(), 0U);

  // A connection that has brought a message is no newcomer any more.
  for (Line& line : lines) ASSERT_EQ(line.send(message()), message().size());
  EXPECT_EQ(take_untended(newcomers), newcomers);
}

TEST_F(InboxTest, EndsANewcomerThatHasGoneWhileItWasNotRead) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < 20; ++i) {
    lines.emplace_back(inbox_->address());
    const std::string hello = greeting("NULL") + ready;
    ASSERT_EQ(lines.back().send(hello), hello.size());
  }
  (void)take_untended();
  for (Line& line : lines) ASSERT_EQ(line.send(message().substr(0, body_bytes)), body_bytes);
  EXPECT_EQ(take_untended(), 0U);
  lines.clear();
  for (int periods = 0; periods < 10; ++periods) {
    (void)inbox_->tend();
    EXPECT_EQ(take_untended(), 0U);
  }
  EXPECT_EQ(inbox_->tend(), 1s) << "nobody is left that is not read";
}

}  // namespace
}  // namespace starling::wire
