/// Internal to Transport: sends the frames of one traffic class to one peer. Frames that wait
/// together travel in one pack (pack.hpp). One thread at a time.
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
/// The limit for data if frames travel in packs, because these are up to four times as long.
inline constexpr int packed_waiting_max = 4;
/// The longest command of a handshake, in bytes.
inline constexpr std::int64_t answer_bytes_max = 1024;
/// ZeroMQ gives a connection up for good after bytes that are not of its protocol. So if nothing
/// could be sent for this long, a new connection is made.
inline constexpr auto stuck_after = std::chrono::seconds{5};

/// The bytes of a key, public or secret.
template <class Bytes>
zmq::const_buffer buffer_of(const Bytes& key) {
  return zmq::buffer(key.data(), key.size());
}

/// Returns the parts in one piece: a copy, unless they already lie one after the other in memory,
/// whatever owns them. Requires: at least one part.
inline Attachment in_one_piece(std::vector<Attachment> parts) {
  std::size_t size = 0;
  bool is_contiguous = true;
  for (const Attachment& part : parts) {
    is_contiguous = is_contiguous && part.bytes.data() == parts.front().bytes.data() + size;
    size += part.bytes.size();
  }
  if (is_contiguous) {
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

/// Makes one part of a message from bodies. The part keeps them alive until ZeroMQ has sent them.
inline zmq::message_t body_message(std::vector<Attachment> parts) {
  auto* body = new Attachment{in_one_piece(std::move(parts))};
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

  /// Queues a frame, which flush() sends together with the frames that follow. Returns false if the
  /// queue has no capacity for it.
  bool add(Frame&& frame) {
    last_used_ = Clock::now();
    if (frame.is_retry) {
      send_waiting();
      if (is_already_queued(frame)) return true;
    }
    const std::size_t size = size_of(frame);
    const auto fits = [&] {
      return waiting_.empty() || waiting_bytes_ + size <= options_.queue_bytes_max;
    };
    if (!fits()) send_waiting();
    if (!fits()) return false;
    if (waiting_.empty()) last_progress_ = last_used_;
    waiting_bytes_ += size;
    waiting_.push_back(std::move(frame));
    return true;
  }

  /// Sends as many of the waiting frames as ZeroMQ takes.
  void flush() {
    send_waiting();
    reconnect_if_stuck();
  }

  /// Gives the messages that ZeroMQ holds `time` to leave after the end of this object.
  void linger_for(std::chrono::milliseconds time) {
    socket_.set(zmq::sockopt::linger, static_cast<int>(time.count()));
  }

  [[nodiscard]] bool is_waiting() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] Clock::time_point last_used() const noexcept { return last_used_; }
  /// A descriptor that becomes readable when more can be sent, after flush() has left frames
  /// waiting.
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
  /// How many frames go in one pack, and the bytes of its first part.
  struct PackSize {
    std::size_t frames = 0;
    std::size_t bytes = pack_prefix;
  };

  void send_waiting() {
    while (!waiting_.empty()) {
      if (!next_) next_ = first_message();
      // A send soon after another does not check whether ZeroMQ has capacity by now; asking for
      // events does.
      if (!send(*next_) && (!has_capacity() || !send(*next_))) return;
      waiting_.erase(waiting_.begin(),
                     waiting_.begin() + static_cast<std::ptrdiff_t>(next_->frames));
      waiting_bytes_ -= next_->bytes;
      next_.reset();
      last_progress_ = Clock::now();
    }
  }

  /// Returns false if ZeroMQ has no capacity. It takes all of a message or nothing of it, and both
  /// parts exist before the first is sent, so nothing can fail between them.
  bool send(Message& message) {
    const auto more = message.body ? zmq::send_flags::sndmore : zmq::send_flags::none;
    if (!socket_.send(message.head, more | zmq::send_flags::dontwait)) return false;
    if (message.body) socket_.send(*message.body, zmq::send_flags::dontwait);
    return true;
  }
  [[nodiscard]] bool has_capacity() const {
    return (socket_.get(zmq::sockopt::events) & ZMQ_POLLOUT) != 0;
  }

  [[nodiscard]] Message first_message() const {
    if (const PackSize small = first_pack(BodyPlace::in_pack); small.frames > 0)
      return small.frames == 1 && waiting_.front().body.empty() ? unpacked()
                                                                : pack(small, BodyPlace::in_pack);
    // Encryption copies the bytes anyway, and is fastest with one range in each message.
    if (options_.keys) return unpacked();
    const PackSize large = first_pack(BodyPlace::second_part);
    return large.frames > 1 ? pack(large, BodyPlace::second_part) : unpacked();
  }

  /// Returns how many of the first waiting frames fit in one pack.
  [[nodiscard]] PackSize first_pack(BodyPlace body_place) const {
    PackSize result;
    std::size_t second_part = 0;
    for (const Frame& frame : waiting_) {
      const std::size_t size = packed_size(frame, body_place);
      second_part += frame.body_size();
      const bool fits = body_place == BodyPlace::in_pack
                            ? size <= packed_frame_max
                            : !frame.body.empty() && second_part <= bodies_max();
      if (!fits || result.bytes + size > pack_max) break;
      result.bytes += size;
      ++result.frames;
    }
    return result;
  }
  [[nodiscard]] std::size_t bodies_max() const {
    return std::min(second_part_max, options_.part_bytes_max);
  }

  [[nodiscard]] Message pack(const PackSize& size, BodyPlace body_place) const {
    Message message{.frames = size.frames, .bytes = 0, .head = zmq::message_t{size.bytes}};
    std::vector<Attachment> second_part;
    std::byte* at = begin_pack(static_cast<std::byte*>(message.head.data()));
    for (std::size_t i = 0; i < size.frames; ++i) {
      const Frame& frame = waiting_[i];
      at = put_packed(frame, body_place, at);
      message.bytes += size_of(frame);
      if (body_place == BodyPlace::second_part)
        std::ranges::copy(frame.body, std::back_inserter(second_part));
    }
    if (!second_part.empty()) message.body = body_message(std::move(second_part));
    return message;
  }

  /// Makes a message of the first waiting frame alone.
  [[nodiscard]] Message unpacked() const {
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
    // Frames wait in waiting_ rather than in ZeroMQ, for a connection that may never come about.
    socket_.set(immediate, true);
    // By this socket the peer only answers the handshake: it may send no more than one message, and
    // none longer than a handshake.
    socket_.set(rcvhwm, 1);
    socket_.set(maxmsgsize, answer_bytes_max);
    const int data_max = options_.keys ? data_waiting_max : packed_waiting_max;
    socket_.set(sndhwm, traffic_class_ == TrafficClass::data ? data_max : control_waiting_max);
    socket_.set(reconnect_ivl, 100);
    socket_.set(reconnect_ivl_max, 1000);
    socket_.set(connect_timeout, 1000);
    socket_.set(handshake_ivl, 3000);
    // Closes the connection once sent bytes stay unacknowledged, as in a partition; idle
    // connections cost nothing.
    socket_.set(tcp_maxrt, 1500);
    if (const auto& keys =
            traffic_class_ == TrafficClass::handshake ? options_.handshake_keys : options_.keys) {
      socket_.set(curve_publickey, buffer_of(keys->public_key));
      socket_.set(curve_secretkey, buffer_of(keys->secret_key));
      socket_.set(curve_serverkey, buffer_of(*peer_.key));
    }
    socket_.connect(peer_.address);
  }

  /// Returns true if a waiting frame has the same body.
  [[nodiscard]] bool is_already_queued(const Frame& frame) const {
    if (frame.body.empty()) return false;
    const auto* const first = frame.body.front().bytes.data();
    return std::ranges::any_of(waiting_, [&](const Frame& other) {
      return !other.body.empty() && other.body.front().bytes.data() == first;
    });
  }

  void reconnect_if_stuck() {
    if (waiting_.empty() || Clock::now() < last_progress_ + stuck_after) return;
    last_progress_ = Clock::now();
    connect();
  }

  zmq::context_t& context_;
  const Peer peer_;
  const TransportOptions& options_;
  const TrafficClass traffic_class_;
  zmq::socket_t socket_;
  std::deque<Frame> waiting_;
  std::size_t waiting_bytes_ = 0;
  /// The message of the first waiting frames, if ZeroMQ was offered it and has not taken it yet.
  std::optional<Message> next_;
  /// When a frame was added last.
  Clock::time_point last_used_;
  /// When ZeroMQ last took a message, or when a frame began to wait in an empty queue.
  Clock::time_point last_progress_ = Clock::now();
};

}  // namespace starling::wire
