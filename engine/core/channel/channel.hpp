/// A reliable link between two members over a network that loses, repeats and reorders packets, and
/// that may be partitioned. Each payload that one side sends is delivered to the other exactly
/// once, in order of sending. The caller chooses what carries the packets and what a payload is:
/// the simulator sends core messages, the wire sends frames.
///
///     channel.send(context, payload)      -> Transmit ...
///     channel.on(context, packet)         -> Deliver ..., Transmit ...
///     channel.on_timer(context)           -> Transmit ...
///
/// A link is between two incarnations: where a member restarts, the other makes a new link to it.
///
/// Sources: sliding window with selective acknowledgement as in TCP (RFC 9293, RFC 2018), resend
/// times from RFC 6298, tied to a pair of incarnations so that no packet of an old link is taken
/// for one of a new link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/check.hpp"
#include "starling/engine/core/effect.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

/// Returns the bytes that a payload keeps in memory beside itself, which the window counts. Payload
/// types that keep some overload this function.
template <class Payload>
[[nodiscard]] std::size_t payload_bytes(const Payload&) {
  return 0;
}

/// The unit that travels between the two ends of a channel: acknowledgements, and perhaps a
/// payload.
template <class Payload>
struct Packet {
  /// The sender's incarnation.
  Incarnation from = 0;
  /// The receiver's incarnation; absent outside of channels, where the sender does not know it.
  std::optional<Incarnation> to = std::nullopt;
  /// The payload's number among all that the sender sends within this pair of incarnations, from 1;
  /// 0 without a payload.
  std::uint64_t sequence = 0;
  /// The sender of this packet has received all payloads up to this number.
  std::uint64_t acknowledged = 0;
  /// Bit i is set if payload acknowledged + 2 + i has arrived too, ahead of one that is missing.
  std::uint64_t held = 0;
  std::optional<Payload> payload = std::nullopt;
  /// True where the payload was sent before: while the earlier packet still waits to be sent, the
  /// carrier may drop this one.
  bool again = false;

  static constexpr auto fields(auto& m) {
    return std::tie(m.from, m.to, m.sequence, m.acknowledged, m.held, m.payload);
  }
  static constexpr std::size_t fields_unlisted = 1;  // `again` is for the carrier alone
};

/// Send this packet to the other side. It may get lost.
template <class Payload>
struct Transmit {
  Packet<Payload> packet;
};

/// This payload has arrived, the next in order.
template <class Payload>
struct Deliver {
  Payload payload;
};

template <class Payload>
using ChannelEffect = std::variant<Transmit<Payload>, Deliver<Payload>, SetTimer>;
template <class Payload>
using ChannelEffects = std::vector<ChannelEffect<Payload>>;

/// Passed to every event: the time, and the list that takes the effects.
template <class Payload>
struct ChannelContext {
  Time now;
  ChannelEffects<Payload>& out;
};

struct ChannelOptions {
  /// At most this many payloads are in flight, 1 to 64.
  std::size_t window = 64;
  /// At most this many bytes are in flight, except that a larger payload is sent alone.
  std::size_t window_bytes = std::size_t{8} << 20U;
  /// At most this many payloads wait behind a full window; send() refuses more.
  std::size_t queue = 65536;
  /// An acknowledgement waits this long for a payload to ride on. Shorter than resend_min.
  Time acknowledge_within = std::chrono::milliseconds{1};
  /// The resend time until a round trip is measured, and the bounds of the resend time.
  Time resend_first = std::chrono::milliseconds{50};
  Time resend_min = std::chrono::milliseconds{5};
  Time resend_max = std::chrono::seconds{1};
};

/// Computes when to send again: the smoothed round-trip time plus four times its deviation, doubled
/// at each silence (RFC 6298).
class ResendTime {
 public:
  ResendTime(Time first, Time least, Time most) : first_(first), least_(least), most_(most) {}

  /// An acknowledgement came `took` after its payload was sent; the payload was sent only once.
  void measured(Time took);
  /// No acknowledgement came in time.
  void silence() { ++silences_; }
  /// An acknowledgement came: ends the doubling.
  void heard() { silences_ = 0; }
  [[nodiscard]] Time wait() const;

 private:
  Time first_;
  Time least_;
  Time most_;
  std::optional<Time> smoothed_;
  Time deviation_{};
  unsigned silences_ = 0;
};

/// One end of a link. One call at a time; not thread-safe. A payload is copied each time it is
/// sent, so a large one should be a shared pointer.
template <class Payload>
class Channel {
 public:
  using Context = ChannelContext<Payload>;

  /// Requires: a window of 1 to 64.
  Channel(Incarnation self, Incarnation other, ChannelOptions options = {})
      : options_(options),
        resend_(options.resend_first, options.resend_min, options.resend_max),
        self_(self),
        other_(other) {
    STARLING_CHECK(options_.window >= 1 && options_.window <= 64);
  }

  /// Sends `payload` to the other side. Returns false, and leaves `payload` as it was, where room()
  /// is 0.
  [[nodiscard]] bool send(const Context& context, Payload&& payload) {
    if (room() == 0) return false;
    waiting_.push_back(std::move(payload));
    fill_window(context);
    set_alarm(context);
    return true;
  }

  /// A packet of the other side has arrived. Ignored where it is of another pair of incarnations.
  void on(const Context& context, Packet<Payload> packet) {
    if (packet.from != other_ || packet.to != self_) return;
    acknowledge(context, packet);
    if (packet.sequence > 0 && packet.payload) accept(context, std::move(packet));
    fill_window(context);
    set_alarm(context);
  }

  /// Does the same as on(), but drops the packet's payload as if it were lost.
  void on_acknowledgement(const Context& context, Packet<Payload> packet) {
    packet.sequence = 0;
    packet.payload.reset();
    on(context, std::move(packet));
  }

  void on_timer(const Context& context) {
    timer_.fired(context.now);
    if (resend_at_ && *resend_at_ <= context.now) {
      resend_.silence();
      resend(context);
    }
    if (acknowledge_at_ && *acknowledge_at_ <= context.now) transmit(context);
    set_alarm(context);
  }

  /// Returns how many payloads send() takes now.
  [[nodiscard]] std::size_t room() const noexcept {
    return options_.window + options_.queue - in_flight_.size() - waiting_.size();
  }
  /// Payloads that were sent and are not known to have arrived.
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_.size(); }
  [[nodiscard]] std::size_t bytes_in_flight() const noexcept { return bytes_in_flight_; }
  /// Payloads that are not sent yet.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  /// Payloads kept until one before them arrives.
  [[nodiscard]] std::size_t early() const noexcept { return early_.size(); }
  /// True where all payloads are known to have arrived.
  [[nodiscard]] bool settled() const noexcept { return in_flight_.empty() && waiting_.empty(); }
  [[nodiscard]] Incarnation other() const noexcept { return other_; }

 private:
  struct Sent {
    Payload payload;
    Time at;
    bool repeated = false;
    bool held = false;
  };

  /// Number of the first payload in flight.
  [[nodiscard]] std::uint64_t first() const noexcept { return sent_ - in_flight_.size() + 1; }

  /// Sends a packet with this side's acknowledgements, and with `payload` if there is one.
  void transmit(const Context& context, std::uint64_t sequence = 0,
                std::optional<Payload> payload = std::nullopt, bool again = false) {
    acknowledge_at_.reset();
    unsaid_ = 0;
    unsaid_bytes_ = 0;
    std::uint64_t held = 0;
    for (const auto& [number, unused] : early_)
      held |= std::uint64_t{1} << (number - delivered_ - 2);
    context.out.push_back(
        Transmit<Payload>{{self_, other_, sequence, delivered_, held, std::move(payload), again}});
  }

  [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept {
    return in_flight_.empty() || (in_flight_.size() < options_.window &&
                                  bytes_in_flight_ + bytes <= options_.window_bytes);
  }

  void fill_window(const Context& context) {
    while (!waiting_.empty()) {
      const std::size_t bytes = payload_bytes(waiting_.front());
      if (!has_room_for(bytes)) return;
      bytes_in_flight_ += bytes;
      if (in_flight_.empty()) resend_at_ = context.now + resend_.wait();
      in_flight_.push_back({std::move(waiting_.front()), context.now});
      waiting_.pop_front();
      transmit(context, ++sent_, in_flight_.back().payload);
    }
  }

  void resend(const Context& context) {
    std::uint64_t number = first();
    for (Sent& sent : in_flight_) {
      if (!sent.held) {
        sent.repeated = true;
        transmit(context, number, sent.payload, true);
      }
      ++number;
    }
    resend_at_ = context.now + resend_.wait();
  }

  /// Handles the acknowledgements in `packet`.
  void acknowledge(const Context& context, const Packet<Payload>& packet) {
    if (packet.acknowledged > sent_) return;  // the other side cannot have received it
    bool news = false;
    while (!in_flight_.empty() && first() <= packet.acknowledged) {
      const Sent& sent = in_flight_.front();
      if (!sent.repeated && !sent.held) resend_.measured(context.now - sent.at);
      bytes_in_flight_ -= payload_bytes(sent.payload);
      in_flight_.pop_front();
      news = true;
    }
    for (std::uint64_t bit = 0; bit < 64; ++bit) {
      if ((packet.held >> bit & 1U) == 0) continue;
      const std::uint64_t number = packet.acknowledged + 2 + bit;
      if (number < first() || number > sent_) continue;
      Sent& sent = in_flight_[number - first()];
      if (std::exchange(sent.held, true)) continue;
      if (!sent.repeated) resend_.measured(context.now - sent.at);
      news = true;
    }
    if (!news) return;
    resend_.heard();
    resend_at_.reset();
    if (!in_flight_.empty()) resend_at_ = context.now + resend_.wait();
  }

  /// Keeps the payload of `packet`, and delivers all payloads that are next in order.
  void accept(const Context& context, Packet<Payload> packet) {
    if (packet.sequence > delivered_ + 64) return;  // no window reaches so far
    const Time latest = context.now + options_.acknowledge_within;
    if (!acknowledge_at_) acknowledge_at_ = latest;
    if (packet.sequence <= delivered_) return;
    const std::size_t bytes = payload_bytes(*packet.payload);
    early_.try_emplace(packet.sequence, std::move(*packet.payload));
    for (auto next = early_.begin(); next != early_.end() && next->first == delivered_ + 1;
         next = early_.erase(next)) {
      ++delivered_;
      context.out.push_back(Deliver<Payload>{std::move(next->second)});
    }
    // Acknowledges half a window at once; else a full window would wait for the timer.
    unsaid_bytes_ += bytes;
    if (++unsaid_ >= options_.window / 2 || unsaid_bytes_ >= options_.window_bytes / 2)
      acknowledge_at_ = context.now;
  }

  void set_alarm(const Context& context) {
    if (acknowledge_at_ && *acknowledge_at_ <= context.now) transmit(context);
    if (acknowledge_at_) timer_.want(context, *acknowledge_at_);
    if (resend_at_) timer_.want(context, *resend_at_);
  }

  ChannelOptions options_;
  ResendTime resend_;
  Incarnation self_;
  Incarnation other_;

  /// Counts the payloads sent; the last of them are in flight.
  std::uint64_t sent_ = 0;
  std::deque<Sent> in_flight_;
  std::size_t bytes_in_flight_ = 0;
  std::deque<Payload> waiting_;
  /// When to send the payloads in flight again.
  std::optional<Time> resend_at_;

  /// Counts the payloads delivered.
  std::uint64_t delivered_ = 0;
  /// Payloads that arrived ahead of a missing one, by number; at most 63.
  std::map<std::uint64_t, Payload> early_;
  /// When to acknowledge the received payloads, and how many payloads and bytes came since the last
  /// acknowledgement.
  std::optional<Time> acknowledge_at_;
  std::size_t unsaid_ = 0;
  std::size_t unsaid_bytes_ = 0;

  Timer timer_;
};

}  // namespace starling::core
