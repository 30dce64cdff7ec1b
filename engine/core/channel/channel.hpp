/// A reliable link between two members over a network that loses, repeats and reorders packets, and
/// that may be partitioned. Each payload that one side sends is delivered to the other exactly
/// once, in order of sending. The caller transmits the packets and chooses the payload's type.
///
///     channel.send(context, payload)      -> Transmit ...
///     channel.on(context, packet)         -> Deliver ..., Transmit ...
///     channel.on_timer(context)           -> Transmit ...
///
/// A link is between two incarnations: when a member restarts, the other makes a new link to it. A
/// Channel object is one end of a link.
///
/// Sources: the window slides and acknowledgements are selective as in TCP (RFC 9293, RFC 2018);
/// resend timeouts are from RFC 6298. Each packet names both incarnations, so that no packet of an
/// old link is taken for one of a new link.
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

/// Returns the bytes of memory that a payload points to, for ChannelOptions::window_bytes. A
/// payload type that points to memory overloads this function.
template <class Payload>
[[nodiscard]] std::size_t payload_bytes(const Payload&) {
  return 0;
}

/// One packet from one end of a channel to the other: acknowledgements, and perhaps a payload.
template <class Payload>
struct Packet {
  /// The sender's incarnation.
  Incarnation from = 0;
  /// The receiver's incarnation; absent if the sender does not know it, as in a packet that is sent
  /// without a channel.
  std::optional<Incarnation> to = std::nullopt;
  /// The payload's sequence number: the sender counts the payloads of this link from 1. 0: the
  /// packet has no payload, or was sent without a channel.
  std::uint64_t sequence = 0;
  /// The sender of this packet has received all payloads up to this number.
  std::uint64_t acknowledged = 0;
  /// Bit i is set if the sender of this packet has received payload acknowledged + 2 + i, which is
  /// out of order.
  std::uint64_t selective_acks = 0;
  std::optional<Payload> payload = std::nullopt;
  /// True if the payload was sent before: if the earlier packet still waits in a queue on this
  /// node, this packet may be dropped.
  bool is_resend = false;

  static constexpr auto fields(auto& m) {
    return std::tie(m.from, m.to, m.sequence, m.acknowledged, m.selective_acks, m.payload);
  }
  static constexpr std::size_t fields_unlisted = 1;  // `is_resend` stays on the sender's node
};

/// Send this packet to the other side. It may get lost.
template <class Payload>
struct Transmit {
  Packet<Payload> packet;
};

/// The other side has sent this payload, the next in order: pass it to this side's member.
template <class Payload>
struct Deliver {
  Payload payload;
};

template <class Payload>
using ChannelEffect = std::variant<Transmit<Payload>, Deliver<Payload>, SetTimer>;
template <class Payload>
using ChannelEffects = std::vector<ChannelEffect<Payload>>;

/// Passed to every event: the time, and the list to which the channel appends its effects.
template <class Payload>
struct ChannelContext {
  Time now;
  ChannelEffects<Payload>& out;
};

struct ChannelOptions {
  /// At most this many payloads are in flight; 1 to 64.
  std::size_t window = 64;
  /// At most this many bytes are in flight; a single payload that is larger is sent alone.
  std::size_t window_bytes = std::size_t{8} << 20U;
  /// At most this many payloads wait behind a full window; send() refuses more.
  std::size_t queue = 65536;
  /// An acknowledgement waits at most this long for a payload that can carry it. Shorter than
  /// resend_min.
  Time acknowledge_delay_max = std::chrono::milliseconds{1};
  /// The resend timeout until a round trip is measured, and the bounds of the timeout.
  Time resend_initial = std::chrono::milliseconds{50};
  Time resend_min = std::chrono::milliseconds{5};
  Time resend_max = std::chrono::seconds{1};
};

/// Computes the resend timeout: the smoothed round-trip time plus four times its deviation, doubled
/// at each timeout (RFC 6298).
///
/// An acknowledgement of a payload that was sent twice does not tell which of the packets it
/// answers (Karn's problem), only that the round trip is at most as long as the payload's age.
/// While no round trip is measured, the timeout exceeds this age: a timeout below the round trip
/// would let each payload be sent twice, and so none would ever be measured.
class ResendTimeout {
 public:
  ResendTimeout(Time initial, Time min, Time max) : initial_(initial), min_(min), max_(max) {}

  /// An acknowledgement came `round_trip` after its payload was sent. Requires: the payload was
  /// sent only once.
  void on_round_trip(Time round_trip);
  /// An acknowledgement came for a payload that was sent several times, first `age` ago.
  void on_resent_acknowledged(Time age);
  /// No acknowledgement came before the timeout.
  void on_timeout() {
    ++timeouts_;
    is_counted_ = false;
  }
  /// An acknowledgement came: ends the doubling.
  void on_acknowledged() { timeouts_ = 0; }
  [[nodiscard]] Time get() const;
  /// True if no acknowledgement has come since the last timeout.
  [[nodiscard]] bool has_expired() const noexcept { return timeouts_ > 0; }

 private:
  Time initial_;
  Time min_;
  Time max_;
  std::optional<Time> smoothed_;
  Time deviation_{};
  /// While no round trip is measured, the age of the resent payload that was acknowledged last.
  Time resent_age_{};
  /// Counts, since a round trip was last measured, the timeouts after which a resent payload was
  /// acknowledged.
  unsigned resent_count_ = 0;
  /// True if resent_count_ counts the last timeout.
  bool is_counted_ = false;
  unsigned timeouts_ = 0;
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
        resend_timeout_(options.resend_initial, options.resend_min, options.resend_max),
        self_(self),
        other_(other) {
    STARLING_CHECK(options_.window >= 1 && options_.window <= 64);
  }

  /// Sends `payload` to the other side. Returns false, and leaves `payload` as it was, if
  /// free_capacity() is 0.
  [[nodiscard]] bool send(const Context& context, Payload&& payload) {
    if (free_capacity() == 0) return false;
    queue_.push_back(std::move(payload));
    fill_window(context);
    set_timers(context);
    return true;
  }

  /// Handles a packet from the other side; ignores it if it names other incarnations.
  void on(const Context& context, Packet<Payload> packet) {
    if (packet.from != other_ || packet.to != self_) return;
    acknowledge(context, packet);
    if (packet.sequence > 0 && packet.payload) receive_payload(context, std::move(packet));
    fill_window(context);
    set_timers(context);
  }

  /// Does the same as on(), but drops the packet's payload as if it were lost.
  void on_acknowledgement(const Context& context, Packet<Payload> packet) {
    packet.sequence = 0;
    packet.payload.reset();
    on(context, std::move(packet));
  }

  void on_timer(const Context& context) {
    timer_.remove_due(context.now);
    if (resend_at_ && *resend_at_ <= context.now) {
      resend_timeout_.on_timeout();
      resend(context);
    }
    if (acknowledge_at_ && *acknowledge_at_ <= context.now) transmit(context);
    set_timers(context);
  }

  /// Returns how many more payloads send() accepts now.
  [[nodiscard]] std::size_t free_capacity() const noexcept {
    return options_.window + options_.queue - in_flight_.size() - queue_.size();
  }
  /// Returns how many payloads were sent and are not acknowledged.
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_.size(); }
  /// True if at least half of the payloads that fit into the window are in flight, and no
  /// acknowledgement has come since the last resend timeout.
  [[nodiscard]] bool is_stalled() const noexcept {
    return 2 * in_flight_.size() >= options_.window && resend_timeout_.has_expired();
  }
  [[nodiscard]] std::size_t bytes_in_flight() const noexcept { return bytes_in_flight_; }
  /// Returns how many payloads wait behind a full window.
  [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }
  /// Returns how many payloads arrived out of order and are not delivered yet.
  [[nodiscard]] std::size_t out_of_order() const noexcept { return out_of_order_.size(); }
  /// True if all payloads are acknowledged.
  [[nodiscard]] bool is_settled() const noexcept { return in_flight_.empty() && queue_.empty(); }
  [[nodiscard]] Incarnation other() const noexcept { return other_; }

 private:
  struct Sent {
    Payload payload;
    /// When the payload was first sent.
    Time sent_at;
    bool resent = false;
    bool selectively_acknowledged = false;
  };

  /// Returns the sequence number of the first payload in flight.
  [[nodiscard]] std::uint64_t first_in_flight() const noexcept {
    return sent_ - in_flight_.size() + 1;
  }

  /// Sends a packet with this side's acknowledgements, and with `payload` if there is one.
  void transmit(const Context& context, std::uint64_t sequence = 0,
                std::optional<Payload> payload = std::nullopt, bool is_resend = false) {
    acknowledge_at_.reset();
    unacknowledged_ = 0;
    unacknowledged_bytes_ = 0;
    std::uint64_t selective_acks = 0;
    for (const auto& [received, unused] : out_of_order_)
      selective_acks |= std::uint64_t{1} << (received - delivered_ - 2);
    context.out.push_back(Transmit<Payload>{
        {self_, other_, sequence, delivered_, selective_acks, std::move(payload), is_resend}});
  }

  [[nodiscard]] bool fits_window(std::size_t bytes) const noexcept {
    return in_flight_.empty() || (in_flight_.size() < options_.window &&
                                  bytes_in_flight_ + bytes <= options_.window_bytes);
  }

  void fill_window(const Context& context) {
    while (!queue_.empty()) {
      const std::size_t bytes = payload_bytes(queue_.front());
      if (!fits_window(bytes)) return;
      bytes_in_flight_ += bytes;
      if (in_flight_.empty()) resend_at_ = context.now + resend_timeout_.get();
      in_flight_.push_back({std::move(queue_.front()), context.now});
      queue_.pop_front();
      transmit(context, ++sent_, in_flight_.back().payload);
    }
  }

  void resend(const Context& context) {
    std::uint64_t sequence = first_in_flight();
    for (Sent& sent : in_flight_) {
      if (!sent.selectively_acknowledged) {
        sent.resent = true;
        transmit(context, sequence, sent.payload, true);
      }
      ++sequence;
    }
    resend_at_ = context.now + resend_timeout_.get();
  }

  /// Learns from the first acknowledgement of a payload how long a round trip takes.
  void measure(const Context& context, const Sent& sent) {
    const Time age = context.now - sent.sent_at;
    if (sent.resent)
      resend_timeout_.on_resent_acknowledged(age);
    else
      resend_timeout_.on_round_trip(age);
  }

  /// Handles the acknowledgements in `packet`.
  void acknowledge(const Context& context, const Packet<Payload>& packet) {
    if (packet.acknowledged > sent_) return;  // acknowledges a payload that was never sent
    bool has_advanced = false;
    bool is_new = false;
    while (!in_flight_.empty() && first_in_flight() <= packet.acknowledged) {
      const Sent& sent = in_flight_.front();
      if (!sent.selectively_acknowledged) measure(context, sent);
      bytes_in_flight_ -= payload_bytes(sent.payload);
      in_flight_.pop_front();
      has_advanced = is_new = true;
    }
    for (std::uint64_t bit = 0; bit < 64; ++bit) {
      if ((packet.selective_acks >> bit & 1U) == 0) continue;
      const std::uint64_t sequence = packet.acknowledged + 2 + bit;
      if (sequence < first_in_flight() || sequence > sent_) continue;
      Sent& sent = in_flight_[sequence - first_in_flight()];
      if (std::exchange(sent.selectively_acknowledged, true)) continue;
      measure(context, sent);
      is_new = true;
    }
    if (!is_new) return;
    resend_timeout_.on_acknowledged();
    if (in_flight_.empty()) return resend_at_.reset();
    // Acknowledgements of later payloads do not postpone the resending of a lost one.
    const Time resend_at = context.now + resend_timeout_.get();
    resend_at_ = has_advanced ? resend_at : std::min(*resend_at_, resend_at);
  }

  /// Stores the payload of `packet`, and delivers all payloads that are next in order.
  void receive_payload(const Context& context, Packet<Payload> packet) {
    if (packet.sequence > delivered_ + 64) return;  // no correct sender has so large a window
    if (!acknowledge_at_) acknowledge_at_ = context.now + options_.acknowledge_delay_max;
    if (packet.sequence <= delivered_) return;
    const std::size_t bytes = payload_bytes(*packet.payload);
    out_of_order_.try_emplace(packet.sequence, std::move(*packet.payload));
    for (auto next = out_of_order_.begin();
         next != out_of_order_.end() && next->first == delivered_ + 1;
         next = out_of_order_.erase(next)) {
      ++delivered_;
      context.out.push_back(Deliver<Payload>{std::move(next->second)});
    }
    // Acknowledges without delay once half a window has come: a sender whose window is full would
    // have to wait until acknowledge_delay_max is over.
    unacknowledged_bytes_ += bytes;
    if (++unacknowledged_ >= options_.window / 2 ||
        unacknowledged_bytes_ >= options_.window_bytes / 2)
      acknowledge_at_ = context.now;
  }

  void set_timers(const Context& context) {
    if (acknowledge_at_ && *acknowledge_at_ <= context.now) transmit(context);
    if (acknowledge_at_) timer_.ensure(context, *acknowledge_at_);
    if (resend_at_) timer_.ensure(context, *resend_at_);
  }

  ChannelOptions options_;
  ResendTimeout resend_timeout_;
  Incarnation self_;
  Incarnation other_;

  /// Counts the payloads sent: the sequence number of the last one.
  std::uint64_t sent_ = 0;
  std::deque<Sent> in_flight_;
  std::size_t bytes_in_flight_ = 0;
  std::deque<Payload> queue_;
  /// When to send the payloads in flight again.
  std::optional<Time> resend_at_;

  /// Counts the payloads delivered.
  std::uint64_t delivered_ = 0;
  /// Payloads that arrived out of order, by sequence number; at most 63.
  std::map<std::uint64_t, Payload> out_of_order_;
  /// When to acknowledge the received payloads.
  std::optional<Time> acknowledge_at_;
  /// The payloads and bytes received since this side last acknowledged.
  std::size_t unacknowledged_ = 0;
  std::size_t unacknowledged_bytes_ = 0;

  Timer timer_;
};

}  // namespace starling::core
