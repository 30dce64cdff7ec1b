/// Internal to Transport: one lane to one peer. Small frames that wait together go as one message.
/// One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "starling/actor/wire/pack.hpp"
#include "starling/actor/wire/transport.hpp"

namespace starling::wire {

/// Messages that ZeroMQ itself may hold for one lane: what it holds is lost when a connection
/// breaks.
inline constexpr int control_waiting_max = 32;
inline constexpr int data_waiting_max = 16;
/// ZeroMQ gives a connection up for good after bytes that are none of its protocol. So where
/// nothing could be sent for this long, the connection is made anew.
inline constexpr auto stuck_after = std::chrono::seconds{5};

inline zmq::const_buffer buffer_of(const Key& key) { return zmq::buffer(key.data(), key.size()); }

/// The body of a long frame as one message; one that is in one piece is handed over, not copied.
inline zmq::message_t body_message(std::vector<Attachment>& body, std::size_t size) {
  if (body.size() == 1) {
    auto* owner = new std::shared_ptr<const void>{std::move(body[0].owner)};
    // ZeroMQ only reads what it sends.
    auto* bytes = const_cast<std::byte*>(body[0].bytes.data());
    return {bytes, size,
            [](void*, void* hint) { delete static_cast<std::shared_ptr<const void>*>(hint); },
            owner};
  }
  zmq::message_t message{size};
  auto* at = static_cast<std::byte*>(message.data());
  for (const Attachment& part : body) at = std::ranges::copy(part.bytes, at).out;
  return message;
}

/// Frames to one peer in one lane.
class Outlet {
 public:
  using Clock = std::chrono::steady_clock;

  Outlet(zmq::context_t& context, const Peer& peer, const TransportOptions& options, Lane lane)
      : context_(context), peer_(peer), options_(options), lane_(lane) {
    connect();
  }

  /// To be sent with what follows, by flush(). False where there is no room for it.
  bool add(Frame&& frame) {
    used_ = Clock::now();
    if (frame.again) {
      send_waiting();
      if (waits(frame)) return true;
    }
    const std::size_t size = size_of(frame);
    const auto fits = [&] {
      return waiting_.empty() || waiting_bytes_ + size <= options_.queue_bytes_max;
    };
    if (!fits()) send_waiting();
    if (!fits()) return false;
    if (waiting_.empty()) moved_ = used_;
    waiting_bytes_ += size;
    waiting_.push_back(std::move(frame));
    return true;
  }

  /// Sends what it can.
  void flush() {
    send_waiting();
    unstick();
  }

  [[nodiscard]] bool is_waiting() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] Clock::time_point used() const noexcept { return used_; }
  /// Becomes readable where more could be sent, after flush() has left something waiting.
  [[nodiscard]] int descriptor() const { return socket_.get(zmq::sockopt::fd); }

 private:
  static std::size_t size_of(const Frame& frame) { return frame.head.size() + frame.body_size(); }

  void send_waiting() {
    while (!waiting_.empty()) {
      if (packed_ == 0) pack_next();
      // A send soon after another does not look whether there is room again; asking for events
      // does.
      if (!send_next() && (!has_room() || !send_next())) return;
      for (std::size_t i = 0; i < std::max<std::size_t>(packed_, 1); ++i) {
        waiting_bytes_ -= size_of(waiting_.front());
        waiting_.pop_front();
      }
      packed_ = 0;
      moved_ = Clock::now();
    }
  }

  /// Packs the first frames that wait: none where the first is long, or is one message by itself.
  void pack_next() {
    std::size_t count = 0;
    std::size_t bytes = pack_prefix;
    for (const Frame& frame : waiting_) {
      const std::size_t size = packed_size(frame);
      if (size > packed_frame_max || bytes + size > pack_max) break;
      bytes += size;
      ++count;
    }
    if (count == 0 || (count == 1 && waiting_.front().body.empty())) return;
    pack_ = zmq::message_t{bytes};
    std::byte* at = begin_pack(static_cast<std::byte*>(pack_.data()));
    for (std::size_t i = 0; i < count; ++i) at = put_packed(waiting_[i], at);
    packed_ = count;
  }

  bool send_next() {
    return packed_ > 0 ? socket_.send(pack_, zmq::send_flags::dontwait).has_value()
                       : send_alone(waiting_.front());
  }
  [[nodiscard]] bool has_room() const {
    return (socket_.get(zmq::sockopt::events) & ZMQ_POLLOUT) != 0;
  }

  bool send_alone(Frame& frame) {
    const std::size_t body = frame.body_size();
    const auto more = body > 0 ? zmq::send_flags::sndmore : zmq::send_flags::none;
    if (!socket_.send(zmq::const_buffer{frame.head.data(), frame.head.size()},
                      more | zmq::send_flags::dontwait))
      return false;
    if (body > 0) socket_.send(body_message(frame.body, body), zmq::send_flags::dontwait);
    return true;
  }

  void connect() {
    using namespace zmq::sockopt;
    socket_ = zmq::socket_t{context_, zmq::socket_type::dealer};
    socket_.set(ipv6, true);
    socket_.set(linger, 0);
    // Frames wait here rather than on a connection that may never come about.
    socket_.set(immediate, true);
    socket_.set(sndhwm, lane_ == Lane::data ? data_waiting_max : control_waiting_max);
    socket_.set(reconnect_ivl, 100);
    socket_.set(reconnect_ivl_max, 1000);
    socket_.set(connect_timeout, 1000);
    socket_.set(handshake_ivl, 3000);
    // A cut is noticed by what is not acknowledged; idle connections cost nothing.
    socket_.set(tcp_maxrt, 1500);
    if (const auto& keys = lane_ == Lane::gate ? options_.gate : options_.keys) {
      socket_.set(curve_publickey, buffer_of(keys->public_key));
      socket_.set(curve_secretkey, buffer_of(keys->secret_key));
      socket_.set(curve_serverkey, buffer_of(*peer_.key));
    }
    socket_.connect(peer_.address);
  }

  [[nodiscard]] bool waits(const Frame& frame) const {
    if (frame.body.empty()) return false;
    const auto* const first = frame.body.front().bytes.data();
    return std::ranges::any_of(waiting_, [&](const Frame& other) {
      return !other.body.empty() && other.body.front().bytes.data() == first;
    });
  }

  void unstick() {
    if (waiting_.empty() || Clock::now() < moved_ + stuck_after) return;
    moved_ = Clock::now();
    connect();
  }

  zmq::context_t& context_;
  const Peer peer_;
  const TransportOptions& options_;
  const Lane lane_;
  zmq::socket_t socket_;
  std::deque<Frame> waiting_;
  /// The first so many of them, as one message that has not found room yet.
  zmq::message_t pack_;
  std::size_t packed_ = 0;
  std::size_t waiting_bytes_ = 0;
  Clock::time_point used_;
  /// When something was sent last, or began to wait.
  Clock::time_point moved_ = Clock::now();
};

}  // namespace starling::wire
