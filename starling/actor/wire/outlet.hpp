/// Internal to Transport: one lane to one peer. Frames that wait together go as one message. One
/// thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "starling/actor/wire/pack.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/blocks.hpp"

namespace starling::wire {

/// Messages that ZeroMQ itself may hold for one lane: what it holds is lost when a connection
/// breaks.
inline constexpr int control_waiting_max = 32;
inline constexpr int data_waiting_max = 16;
/// ZeroMQ gives a connection up for good after bytes that are none of its protocol. So where
/// nothing could be sent for this long, the connection is made anew.
inline constexpr auto stuck_after = std::chrono::seconds{5};

inline zmq::const_buffer buffer_of(const Key& key) { return zmq::buffer(key.data(), key.size()); }

/// The same bytes in one piece: a copy, unless they lie so.
inline Attachment joined(std::vector<Attachment> parts) {
  std::size_t size = 0;
  bool is_joined = true;
  for (const Attachment& part : parts) {
    is_joined = is_joined && part.bytes.data() == parts.front().bytes.data() + size;
    size += part.bytes.size();
  }
  if (is_joined) {
    const auto* const bytes = parts.front().bytes.data();
    return {std::make_shared<std::vector<Attachment>>(std::move(parts)), {bytes, size}};
  }
  const std::shared_ptr<void> block{blocks::take(size),
                                    [size](void* taken) { blocks::give(taken, size); }};
  auto* const bytes = static_cast<std::byte*>(block.get());
  auto* at = bytes;
  for (const Attachment& part : parts) at = std::ranges::copy(part.bytes, at).out;
  return {block, {bytes, size}};
}

/// Bodies as one part of a message, which takes them over.
inline zmq::message_t body_message(std::vector<Attachment> parts) {
  auto* body = new Attachment{joined(std::move(parts))};
  // ZeroMQ only reads what it sends.
  auto* bytes = const_cast<std::byte*>(body->bytes.data());
  return {bytes, body->bytes.size(),
          [](void*, void* hint) { delete static_cast<Attachment*>(hint); }, body};
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
      if (taken_ == 0) take_next();
      // A send soon after another does not look whether there is room again; asking for events
      // does.
      if (!send_next() && (!has_room() || !send_next())) return;
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken_));
      waiting_bytes_ -= std::exchange(taken_bytes_, 0);
      taken_ = 0;
      moved_ = Clock::now();
    }
  }

  /// Decides which of those that wait are the next message, and packs them if it is a pack.
  void take_next() {
    bodies_ = Bodies::inside;
    auto [frames, bytes] = first_to_pack();
    // What is encrypted is copied anyway, and fastest in messages of a range each.
    if (frames == 0 && !options_.keys) {
      bodies_ = Bodies::behind;
      std::tie(frames, bytes) = first_to_pack();
    }
    const Frame& first = waiting_.front();
    is_pack_ = frames > 1 || (frames == 1 && bodies_ == Bodies::inside && !first.body.empty());
    taken_ = std::max<std::size_t>(frames, 1);
    for (std::size_t i = 0; i < taken_; ++i) taken_bytes_ += size_of(waiting_[i]);
    if (!is_pack_) return;
    pack_ = zmq::message_t{bytes};
    std::byte* at = begin_pack(static_cast<std::byte*>(pack_.data()));
    for (std::size_t i = 0; i < taken_; ++i) at = put_packed(waiting_[i], bodies_, at);
  }

  /// How many of the first frames may go in one pack, and its bytes.
  [[nodiscard]] std::pair<std::size_t, std::size_t> first_to_pack() const {
    std::size_t count = 0;
    std::size_t bytes = pack_prefix;
    std::size_t behind = 0;
    for (const Frame& frame : waiting_) {
      const std::size_t size = packed_size(frame, bodies_);
      behind += frame.body_size();
      const bool fits = bodies_ == Bodies::inside
                            ? size <= packed_frame_max
                            : !frame.body.empty() && behind <= joint_bodies_max;
      if (!fits || bytes + size > pack_max) break;
      bytes += size;
      ++count;
    }
    return {count, bytes};
  }

  /// ZeroMQ has room for all of a message or for none of it.
  bool send_next() {
    const Frame& first = waiting_.front();
    const bool is_two = is_pack_ ? bodies_ == Bodies::behind : !first.body.empty();
    const auto more = is_two ? zmq::send_flags::sndmore : zmq::send_flags::none;
    const auto flags = more | zmq::send_flags::dontwait;
    const auto sent =
        is_pack_ ? socket_.send(pack_, flags)
                 : socket_.send(zmq::const_buffer{first.head.data(), first.head.size()}, flags);
    if (!sent) return false;
    if (is_two) socket_.send(body_message(bodies_of_taken()), zmq::send_flags::dontwait);
    return true;
  }
  [[nodiscard]] bool has_room() const {
    return (socket_.get(zmq::sockopt::events) & ZMQ_POLLOUT) != 0;
  }

  std::vector<Attachment> bodies_of_taken() {
    if (taken_ == 1) return std::move(waiting_.front().body);
    std::vector<Attachment> all;
    for (std::size_t i = 0; i < taken_; ++i)
      std::ranges::move(waiting_[i].body, std::back_inserter(all));
    return all;
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
  std::size_t waiting_bytes_ = 0;
  /// The first so many of them are the next message, which has not found room yet.
  std::size_t taken_ = 0;
  std::size_t taken_bytes_ = 0;
  bool is_pack_ = false;
  Bodies bodies_ = Bodies::inside;
  zmq::message_t pack_;
  Clock::time_point used_;
  /// When something was sent last, or began to wait.
  Clock::time_point moved_ = Clock::now();
};

}  // namespace starling::wire
