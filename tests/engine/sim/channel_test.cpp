/// A channel withstands faults: seeded runs over a network that loses a third of all packets,
/// repeats and reorders them and is partitioned now and then, between two members that are
/// restarted.
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

/// One payload: the incarnations that it was sent between, and its place in their order.
struct TestMessage {
  std::array<Incarnation, 2> lives;
  std::uint64_t number;
};

/// Two ends that send one another messages all along.
class Correspondence {
 public:
  struct Options {
    LinkOptions link;
    Time send_every = 2ms;
    Time until = 2s;
    core::ChannelOptions channel = {};
    bool lives_known = true;
  };

  Correspondence(const Options& options, std::uint64_t seed)
      : options_(options), network_(options.link, seed), random_(seed + 1) {
    for (std::size_t end = 0; end < 2; ++end) {
      restart(end, 1);
      queue_.push(0ms, {.kind = Kind::write, .end = end});
    }
  }

  void cut(NodeId from, NodeId to, Time from_time, Time until) {
    queue_.push(from_time, {.kind = Kind::cut, .end = from, .other = to});
    queue_.push(until, {.kind = Kind::heal, .end = from, .other = to});
  }
  void restart_at(std::size_t end, Time at) {
    queue_.push(at, {.kind = Kind::restart, .end = end});
  }

  /// Runs until nothing is in flight.
  void run() {
    for (int events = 0; !queue_.empty(); ++events) {
      ASSERT_LT(events, 1'000'000) << "the ends never come to rest";
      happen(queue_.pop());
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  /// Expects that all messages that the present incarnations sent one another have arrived.
  void expect_all_arrived() const {
    for (std::size_t end = 0; end < 2; ++end) {
      EXPECT_TRUE(ends_[end].channel->settled());
      EXPECT_EQ(ends_[1 - end].received, ends_[end].sent);
    }
  }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  [[nodiscard]] Time now() const { return queue_.now(); }
  [[nodiscard]] const Network& network() const { return network_; }

 private:
  using Channel = core::Channel<TestMessage>;
  enum class Kind { write, packet, timer, cut, heal, restart };
  struct Event {
    Kind kind;
    std::size_t end;
    std::size_t other = 0;
    Incarnation incarnation = 0;
    core::Packet<TestMessage> packet = {};
  };
  struct End {
    Incarnation incarnation = 0;
    std::optional<Channel> channel;
    /// Messages sent to and received from the present incarnation of the other end.
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    /// The first of them that may be dropped next.
    std::uint64_t drops_from = 1;
  };

  void happen(const Event& event) {
    End& end = ends_[event.end];
    core::ChannelEffects<TestMessage> effects;
    const core::ChannelContext<TestMessage> context{queue_.now(), effects};
    switch (event.kind) {
      case Kind::write:
        if (queue_.now() > options_.until) return;
        queue_.push(queue_.now() + options_.send_every, {.kind = Kind::write, .end = event.end});
        if (end.channel->room() == 0) return;
        ASSERT_TRUE(end.channel->send(
            context, {{end.incarnation, end.channel->other().value_or(0)}, end.sent + 1}));
        ++end.sent;
        break;
      case Kind::packet:
        end.channel->on(context, event.packet);
        break;
      case Kind::timer:
        if (event.incarnation != end.incarnation) return;
        end.channel->on_timer(context);
        break;
      case Kind::cut:
        return network_.cut(static_cast<NodeId>(event.end), static_cast<NodeId>(event.other));
      case Kind::heal:
        return network_.heal(static_cast<NodeId>(event.end), static_cast<NodeId>(event.other));
      case Kind::restart:
        return restart(event.end, end.incarnation + 1);
    }
    execute(event.end, effects);
  }

  void restart(std::size_t which, Incarnation incarnation) {
    End& end = ends_[which];
    end = {.incarnation = incarnation, .channel = std::nullopt};
    const bool known = options_.lives_known && incarnation == 1;
    end.channel.emplace(incarnation, known ? std::optional{Incarnation{1}} : std::nullopt,
                        options_.channel);
  }

  void execute(std::size_t which, core::ChannelEffects<TestMessage>& effects) {
    End& end = ends_[which];
    for (auto& effect : effects) {
      if (auto* out = std::get_if<core::Transmit<TestMessage>>(&effect)) {
        const auto other = static_cast<NodeId>(1 - which);
        for (const Time at : network_.send(queue_.now(), static_cast<NodeId>(which), other, 100))
          queue_.push(at, {.kind = Kind::packet, .end = other, .packet = out->packet});
      } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
        queue_.push(timer->at, {.kind = Kind::timer, .end = which, .incarnation = end.incarnation});
      } else if (const auto* in = std::get_if<core::Deliver<TestMessage>>(&effect)) {
        receive(which, in->payload);
      } else if (std::holds_alternative<core::Restarted>(effect)) {
        end.sent = end.received = 0;
        last_dropped_ = 0;
      } else if (const auto* lost = std::get_if<core::Dropped<TestMessage>>(&effect)) {
        // In order, and without a gap up to the last that was sent.
        if (last_dropped_ > 0) {
          EXPECT_EQ(lost->payload.number, last_dropped_ + 1);
        }
        last_dropped_ = lost->payload.number;
        ++dropped_;
      }
    }
  }

  /// Expects the next message in order between this pair of incarnations, and no other.
  void receive(std::size_t which, const TestMessage& message) {
    End& end = ends_[which];
    ++delivered_;
    ASSERT_EQ(message.number, end.received + 1);
    end.received = message.number;
    ASSERT_EQ(message.lives[0], *end.channel->other());
    // 0: sent before the sender knew the receiver's incarnation.
    ASSERT_TRUE(message.lives[1] == 0 || message.lives[1] == end.incarnation);
  }

  Options options_;
  Queue<Event> queue_;
  Network network_;
  Random random_;
  std::array<End, 2> ends_;
  std::uint64_t delivered_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t last_dropped_ = 0;
};

/// Worse than any network that works.
LinkOptions terrible() {
  return {.latency = {laws::Exponential{3ms}},
          .loss = 0.3,
          .duplication = 0.2,
          .reordering = 0.1,
          .delay = {laws::Exponential{30ms}}};
}

TEST(Channel, DeliversAllOnceAndInOrderOverATerribleNetwork) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Correspondence link{{.link = terrible()}, seed};
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
    EXPECT_EQ(link.delivered(), 2 * 1001U);
    EXPECT_EQ(link.dropped(), 0U);
  }
}

TEST(Channel, GoesOnAfterCutsOfOneDirectionOrBoth) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Correspondence link{{.link = terrible()}, seed};
    Random random{seed};
    for (int i = 0; i < 6; ++i) {
      const auto from = static_cast<NodeId>(random.below(2));
      const Time start{random.below(2'000'000'000)};
      link.cut(from, 1 - from, start, start + Time{random.below(700'000'000)});
    }
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
    EXPECT_EQ(link.dropped(), 0U);
  }
}

TEST(Channel, StartsAnewWithEachLifeAndMixesNone) {
  std::uint64_t dropped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Correspondence link{{.link = terrible(), .lives_known = seed % 2 == 0}, seed};
    Random random{seed};
    for (int i = 0; i < 5; ++i) link.restart_at(random.below(2), Time{random.below(1'900'000'000)});
    link.cut(0, 1, Time{random.below(1'000'000'000)}, 1200ms);
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
    dropped += link.dropped();
  }
  EXPECT_GT(dropped, 0U) << "something was under way to an incarnation that ended";
}

TEST(Channel, KeepsASmallWindowFull) {
  for (const std::size_t window : {1U, 2U, 7U}) {
    Correspondence link{{.link = terrible(), .send_every = 10ms, .channel = {.window = window}},
                        window};
    ASSERT_NO_FATAL_FAILURE(link.run());
    link.expect_all_arrived();
  }
}

/// Without losses nothing is sent twice, and acknowledgements ride on what goes anyway.
TEST(Channel, AddsLittleToAGoodNetwork) {
  Correspondence link{{.link = {.latency = {laws::Constant{1ms}}}}, 1};
  ASSERT_NO_FATAL_FAILURE(link.run());
  link.expect_all_arrived();
  EXPECT_EQ(link.delivered(), 2002U);
  EXPECT_LE(link.network().counts().sent, 2 * 2002U);
}

}  // namespace
}  // namespace starling::sim
