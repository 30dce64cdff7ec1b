/// Internal to Transport: the frames of one traffic class to one peer. Frames that wait together go
/// as one message. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "starling/actor/wire/pack.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/tensor_pool.hpp"

namespace starling::wire {

/// Messages that ZeroMQ itself may hold for one traffic class: what it holds is lost when a
/// connection breaks.
inline constexpr int control_waiting_max = 32;
inline constexpr int data_waiting_max = 16;
/// The limit for data where frames are joined, so that messages are up to four times as long.
inline constexpr int joint_waiting_max = 4;
/// The longest command of a handshake, in bytes.
inline constexpr std::int64_t answer_bytes_max = 1024;
/// ZeroMQ gives a connection up for good after bytes that are not of its protocol. So where nothing
/// could be sent for this long, the connection is made anew.
inline constexpr auto stuck_after = std::chrono::seconds{5};

/// The bytes of a key, public or secret.
template <class Bytes>
zmq::const_buffer buffer_of(const Bytes& key) {
  return zmq::buffer(key.data(), key.size());
}

/// Returns the parts in one piece: a copy, unless they already lie one behind the other in memory,
/// whatever owns them. Requires: at least one part.
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

/// Makes bodies one part of a message, which takes them over.
inline zmq::message_t body_message(std::vector<Attachment> parts) {
  auto* body = new Attachment{joined(std::move(parts))};
  // ZeroMQ only reads what it sends.
  auto* bytes = const_cast<std::byte*>(body->bytes.data());
  return {bytes, body->bytes.size(),
          [](void*, void* hint) { delete static_cast<Attachment*>(hint); }, body};
}

/// Sends the frames of one traffic class to one peer.
class OutboundConnection {
 public:
  using Clock = std::chrono::steady_clock;

  OutboundConnection(zmq::context_t& context, const Peer& peer, const TransportOptions& options,
                     TrafficClass traffic_class)
      : context_(context), peer_(peer), options_(options), traffic_class_(traffic_class) {
    connect();
  }

  /// Takes a frame that flush() sends, together with those that follow. False where there is no
  /// capacity for it.
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

  /// Gives the messages that ZeroMQ holds `time` to leave after the end of this object.
  void linger_for(std::chrono::milliseconds time) {
    socket_.set(zmq::sockopt::linger, static_cast<int>(time.count()));
  }

  [[nodiscard]] bool is_waiting() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] Clock::time_point used() const noexcept { return used_; }
  /// Becomes readable when more can be sent, after flush() has left frames waiting.
  [[nodiscard]] int descriptor() const { return socket_.get(zmq::sockopt::fd); }

 private:
  static std::size_t size_of(const Frame& frame) { return frame.head.size() + frame.body_size(); }

  /// The first frames that wait, in one message.
  struct Message {
    std::size_t frames = 0;
    std::size_t bytes = 0;
    zmq::message_t head;
    std::optional<zmq::message_t> body = std::nullopt;
  };
  /// How many frames go in one pack, and its bytes.
  struct Run {
    std::size_t frames = 0;
    std::size_t bytes = pack_prefix;
  };

  void send_waiting() {
    while (!waiting_.empty()) {
      if (!next_) next_ = first_message();
      // A send soon after another does not check whether ZeroMQ has capacity again; asking for
      // events does.
      if (!send(*next_) && (!has_room() || !send(*next_))) return;
      waiting_.erase(waiting_.begin(),
                     waiting_.begin() + static_cast<std::ptrdiff_t>(next_->frames));
      waiting_bytes_ -= next_->bytes;
      next_.reset();
      moved_ = Clock::now();
    }
  }

  /// ZeroMQ takes all of a message or nothing of it. Both parts are there before one is sent, so
  /// nothing can fail between them.
  bool send(Message& message) {
    const auto more = message.body ? zmq::send_flags::sndmore : zmq::send_flags::none;
    if (!socket_.send(message.head, more | zmq::send_flags::dontwait)) return false;
    if (message.body) socket_.send(*message.body, zmq::send_flags::dontwait);
    return true;
  }
  [[nodiscard]] bool has_room() const {
    return (socket_.get(zmq::sockopt::events) & ZMQ_POLLOUT) != 0;
  }

  [[nodiscard]] Message first_message() const {
    if (const Run small = first_run(Bodies::inside); small.frames > 0)
      return small.frames == 1 && waiting_.front().body.empty() ? alone()
                                                                : pack(small, Bodies::inside);
    // Encryption copies the bytes anyway, and is fastest with one range in each message.
    if (options_.keys) return alone();
    const Run joint = first_run(Bodies::behind);
    return joint.frames > 1 ? pack(joint, Bodies::behind) : alone();
  }

  [[nodiscard]] Run first_run(Bodies bodies) const {
    Run run;
    std::size_t behind = 0;
    for (const Frame& frame : waiting_) {
      const std::size_t size = packed_size(frame, bodies);
      behind += frame.body_size();
      const bool fits = bodies == Bodies::inside ? size <= packed_frame_max
                                                 : !frame.body.empty() && behind <= joint_max();
      if (!fits || run.bytes + size > pack_max) break;
      run.bytes += size;
      ++run.frames;
    }
    return run;
  }
  [[nodiscard]] std::size_t joint_max() const {
    return std::min(joint_bodies_max, options_.part_bytes_max);
  }

  [[nodiscard]] Message pack(const Run& run, Bodies bodies) const {
    Message message{.frames = run.frames, .bytes = 0, .head = zmq::message_t{run.bytes}};
    std::vector<Attachment> behind;
    std::byte* at = begin_pack(static_cast<std::byte*>(message.head.data()));
    for (std::size_t i = 0; i < run.frames; ++i) {
      const Frame& frame = waiting_[i];
      at = put_packed(frame, bodies, at);
      message.bytes += size_of(frame);
      if (bodies == Bodies::behind) std::ranges::copy(frame.body, std::back_inserter(behind));
    }
    if (!behind.empty()) message.body = body_message(std::move(behind));
    return message;
  }

  [[nodiscard]] Message alone() const {
    const Frame& frame = waiting_.front();
    Message message{.frames = 1,
                    .bytes = size_of(frame),
                    .head = zmq::message_t{frame.head.data(), frame.head.size()}};
    if (frame.body_size() > 0) message.body = body_message(frame.body);
    return message;
  }

  void connect() {
    using namespace zmq::sockopt;
    socket_ = zmq::socket_t{context_, zmq::socket_type::dealer};
    socket_.set(ipv6, true);
    socket_.set(zmq::sockopt::linger, 0);
    // Frames wait here rather than on a connection that may never come about.
    socket_.set(immediate, true);
    // The peer only answers the handshake by this socket: takes no more than one message, and
    // nothing longer than a handshake.
    socket_.set(rcvhwm, 1);
    socket_.set(maxmsgsize, answer_bytes_max);
    const int data_max = options_.keys ? data_waiting_max : joint_waiting_max;
    socket_.set(sndhwm, traffic_class_ == TrafficClass::data ? data_max : control_waiting_max);
    socket_.set(reconnect_ivl, 100);
    socket_.set(reconnect_ivl_max, 1000);
    socket_.set(connect_timeout, 1000);
    socket_.set(handshake_ivl, 3000);
    // A partition is noticed by bytes that are not acknowledged; idle connections cost nothing.
    socket_.set(tcp_maxrt, 1500);
    if (const auto& keys =
            traffic_class_ == TrafficClass::handshake ? options_.gate : options_.keys) {
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
  const TrafficClass traffic_class_;
  zmq::socket_t socket_;
  std::deque<Frame> waiting_;
  std::size_t waiting_bytes_ = 0;
  /// The message of the first of them, which ZeroMQ has not taken yet.
  std::optional<Message> next_;
  Clock::time_point used_;
  /// When something was sent last, or began to wait.
  Clock::time_point moved_ = Clock::now();
};

}  // namespace starling::wire
