/// Tests channels between two members that restart, in seeded runs over a network that loses a
/// third of all packets, duplicates and reorders packets, and is partitioned now and then.
#include "starling/engine/core/channel/channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"

namespace starling::sim {
namespace {

using namespace std::chrono_literals;
using core::Incarnation;

/// A payload: the link on which it was sent, and its number among the messages of that link,
/// from 1.
struct TestMessage {
  Incarnation link;
  std::uint64_t number;
};

/// Two channels whose ends send each other messages until `Options::until`. A link is a pair of
/// incarnations of the two ends: each restart of an end begins the next link.
class ChannelPair {
 public:
  struct Options {
    LinkOptions link;
    Time send_every = 2ms;
    Time until = 2s;
    core::ChannelOptions channel = {};
  };

  ChannelPair(const Options& options, std::uint64_t seed)
      : options_(options), network_(options.link, seed) {
    ++link_;
    for (std::size_t end = 0; end < 2; ++end) replace_channel(end, link_);
    for (std::size_t end = 0; end < 2; ++end) queue_.push(0ms, {.kind = Kind::send, .end = end});
  }

  /// Loses all packets in one direction from `from_time` to `until`.
  void block(NodeId from, NodeId to, Time from_time, Time until) {
    queue_.push(from_time, {.kind = Kind::block, .end = from, .other = to});
    queue_.push(until, {.kind = Kind::heal, .end = from, .other = to});
  }
  /// Restarts one of the ends, which take turns.
  void restart_at(Time at) { queue_.push(at, {.kind = Kind::restart, .end = 0}); }

  /// Runs until nothing is in flight.
  void run() {
    for (int events = 0; !queue_.empty(); ++events) {
      ASSERT_LT(events, 1'000'000) << "the ends never finish";
      handle(queue_.pop());
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  /// Expects that all messages of the current link have arrived.
  void expect_all_arrived() const {
    for (std::size_t end = 0; end < 2; ++end) {
      EXPECT_TRUE(ends_[end].channel->is_settled());
      EXPECT_EQ(ends_[1 - end].received, ends_[end].sent);
    }
  }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  /// Counts the messages that were in flight on links that ended.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] Time now() const { return queue_.now(); }
  [[nodiscard]] const Network& network() const { return network_; }

 private:
  using Channel = core::Channel<TestMessage>;
  enum class Kind { send, packet, timer, block, heal, restart, replace_channel };
  struct Event {
    Kind kind;
    std::size_t end;
    std::size_t other = 0;
    Incarnation link = 0;
    core::Packet<TestMessage> packet = {};
  };
  struct End {
    Incarnation link = 0;
    std::optional<Channel> channel;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };

  void handle(const Event& event) {
    End& end = ends_[event.end];
    core::ChannelEffects<TestMessage> effects;
    const core::ChannelContext<TestMessage> context{queue_.now(), effects};
    switch (event.kind) {
      case Kind::send:
        if (queue_.now() > options_.until) return;
        queue_.push(queue_.now() + options_.send_every, {.kind = Kind::send, .end = event.end});
        if (end.channel->free_capacity() == 0) return;
        ASSERT_TRUE(end.channel->send(context, {end.link, end.sent + 1}));
        ++end.sent;
        break;
      case Kind::packet:
        end.channel->on(context, event.packet);
        break;
      case Kind::timer:
        if (event.link != end.link) return;
        end.channel->on_timer(context);
        break;
      case Kind::block:
        return network_.block(static_cast<NodeId>(event.end), static_cast<NodeId>(event.other));
      case Kind::heal:
        return network_.heal(static_cast<NodeId>(event.end), static_cast<NodeId>(event.other));
      case Kind::restart:
        return restart();
      case Kind::replace_channel:
        return replace_channel(event.end, event.link);
    }
    execute(event.end, effects);
  }

  /// Starts one end in a new incarnation, which begins a new link. The other end joins the new link
  /// 7 ms later.
  void restart() {
    const std::size_t end = ++link_ % 2;
    replace_channel(end, link_);
    queue_.push(queue_.now() + 7ms, {.kind = Kind::replace_channel, .end = 1 - end, .link = link_});
  }

  void replace_channel(std::size_t which, Incarnation link) {
    End& end = ends_[which];
    if (end.link >= link) return;  // the end has joined a later link already
    if (end.channel) lost_ += end.channel->in_flight();
    const std::array incarnations{link / 2, (link + 1) / 2};  // the ends restart in turn
    end = {.link = link,
           .channel = Channel{incarnations[which], incarnations[1 - which], options_.channel}};
  }

  void execute(std::size_t which, core::ChannelEffects<TestMessage>& effects) {
    for (auto& effect : effects) {
      if (auto* out = std::get_if<core::Transmit<TestMessage>>(&effect)) {
        const auto other = static_cast<NodeId>(1 - which);
        for (const Time at : network_.send(queue_.now(), static_cast<NodeId>(which), other, 100))
          queue_.push(at, {.kind = Kind::packet, .end = other, .packet = out->packet});
      } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
        queue_.push(timer->at, {.kind = Kind::timer, .end = which, .link = ends_[which].link});
      } else if (const auto* in = std::get_if<core::Deliver<TestMessage>>(&effect)) {
        receive(which, in->payload);
      }
    }
  }

  /// Expects the next message of the end's link, and no other.
  void receive(std::size_t which, const TestMessage& message) {
    ++delivered_;
    ASSERT_EQ(message.link, ends_[which].link);
    ASSERT_EQ(message.number, ++ends_[which].received);
  }

  Options options_;
  Queue<Event> queue_;
  Network network_;
  /// Counts the links; each restart makes the next one.
  Incarnation link_ = 0;
  std::array<End, 2> ends_;
  std::uint64_t delivered_ = 0;
  std::uint64_t lost_ = 0;
};

/// Returns the options of a link that is worse than any real one.
LinkOptions terrible_link() {
  return {.latency = {laws::Exponential{3ms}},
          .loss = 0.3,
          .duplication = 0.2,
          .reordering = 0.1,
          .delay = {laws::Exponential{30ms}}};
}

TEST(Channel, DeliversAllOnceAndInOrderOverATerribleNetwork) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChannelPair link{{.link = terrible_link()}, seed};
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
    EXPECT_EQ(link.delivered(), 2 * 1001U);
  }
}

TEST(Channel, GoesOnAfterPartitionsOfOneDirectionOrBoth) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChannelPair link{{.link = terrible_link()}, seed};
    Random random{seed};
    for (int i = 0; i < 6; ++i) {
      const auto from = static_cast<NodeId>(random.below(2));
      const Time start{random.below(2'000'000'000)};
      link.block(from, 1 - from, start, start + Time{random.below(700'000'000)});
    }
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
  }
}

TEST(Channel, DeliversNoMessageOfAnEarlierLink) {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChannelPair link{{.link = terrible_link()}, seed};
    Random random{seed};
    for (int i = 0; i < 5; ++i) link.restart_at(Time{random.below(1'900'000'000)});
    link.block(0, 1, Time{random.below(1'000'000'000)}, 1200ms);
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
    lost += link.lost();
  }
  EXPECT_GT(lost, 0U) << "messages were in flight on links that ended";
}

TEST(Channel, DeliversAllWithASmallWindow) {
  for (const std::size_t window : {1U, 2U, 7U}) {
    ChannelPair link{{.link = terrible_link(), .send_every = 10ms, .channel = {.window = window}},
                     window};
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
  }
}

/// Without losses no packet is sent twice, and most acknowledgements are sent with payloads.
TEST(Channel, SendsAtMostTwoPacketsAMessageOverAGoodNetwork) {
  ChannelPair link{{.link = {.latency = {laws::Constant{1ms}}}}, 1};
  ASSERT_NO_FATAL_FAILURE(link.run());
  link.expect_all_arrived();
  EXPECT_EQ(link.delivered(), 2002U);
  EXPECT_LE(link.network().counts().sent, 2 * 2002U);
}

}  // namespace
}  // namespace starling::sim
