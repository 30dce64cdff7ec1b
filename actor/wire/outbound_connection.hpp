/// Internal to Transport: sends the frames of one traffic class to one peer. Frames that wait at
/// the same time are sent in packs (pack.hpp). Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "starling/actor/wire/fabric_links.hpp"
#include "starling/actor/wire/pack.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/tensor_pool.hpp"

namespace starling::wire {

/// The most messages that ZeroMQ may hold: for each of the traffic classes control and handshake,
/// and for data. The limits are low because these messages are lost if the connection breaks.
inline constexpr int control_messages_max = 32;
inline constexpr int data_messages_max = 16;
/// The limit for data that is not encrypted. Its frames travel in packs, so its messages are up to
/// four times as long.
inline constexpr int packed_data_messages_max = 4;
/// The most bytes of a message that ZeroMQ may receive: the longest answer of a handshake.
inline constexpr std::int64_t handshake_answer_bytes_max = 1024;
/// If frames have waited for this long and none could be sent, a new connection is made, because
/// ZeroMQ gives up a connection for good when it receives bytes that are not of its protocol.
inline constexpr auto reconnect_after = std::chrono::seconds{5};

/// Returns a view of the bytes of a key, public or secret.
template <class Bytes>
zmq::const_buffer buffer_of(const Bytes& key) {
  return zmq::buffer(key.data(), key.size());
}

/// Joins parts into one attachment. Copies their bytes, unless these are contiguous in memory
/// already, even if they have different owners. Requires: at least one part.
inline Attachment join_parts(std::vector<Attachment> parts) {
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
  const std::shared_ptr<void> block{tensor_pool::allocate(size),
                                    [size](void* memory) { tensor_pool::release(memory, size); }};
  auto* const bytes = static_cast<std::byte*>(block.get());
  auto* out = bytes;
  for (const Attachment& part : parts) out = std::ranges::copy(part.bytes, out).out;
  return {block, {bytes, size}};
}

/// Makes one message part from bodies, which it keeps alive until ZeroMQ has sent them.
inline zmq::message_t make_body_part(std::vector<Attachment> parts) {
  auto* body = new Attachment{join_parts(std::move(parts))};
  // ZeroMQ only reads what it sends.
  auto* bytes = const_cast<std::byte*>(body->bytes.data());
  return {bytes, body->bytes.size(),
          [](void*, void* hint) { delete static_cast<Attachment*>(hint); }, body};
}

/// Sends the frames of one traffic class to one peer.
class OutboundConnection {
 public:
  using Clock = std::chrono::steady_clock;

  /// `writers` writes bodies into memory of the peer where it can; if it is null, all bodies travel
  /// by ZeroMQ.
  OutboundConnection(zmq::context_t& context, const Peer& peer, const TransportOptions& options,
                     TrafficClass traffic_class, FabricWriters* writers = nullptr)
      : context_(context),
        peer_(peer),
        options_(options),
        traffic_class_(traffic_class),
        writers_(traffic_class == TrafficClass::data ? writers : nullptr) {
    connect();
  }

  /// Queues a frame. flush() sends it together with the frames that follow. Returns false if the
  /// queue is full, and drops the frame.
  bool add(Frame&& frame) {
    last_used_at_ = Clock::now();
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
    if (waiting_.empty()) last_progress_at_ = last_used_at_;
    waiting_bytes_ += size;
    waiting_.push_back(std::move(frame));
    return true;
  }

  /// Sends as many of the waiting frames as ZeroMQ accepts, and reconnects if none could be sent
  /// for `reconnect_after`.
  void flush() {
    send_waiting();
    reconnect_if_stuck();
  }

  /// Lets ZeroMQ go on sending the messages that it holds, for `time` after the end of this object.
  void linger_for(std::chrono::milliseconds time) {
    socket_.set(zmq::sockopt::linger, static_cast<int>(time.count()));
  }

  /// Returns true if frames wait to be sent.
  [[nodiscard]] bool is_waiting() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] Clock::time_point last_used_at() const noexcept { return last_used_at_; }
  /// A descriptor that becomes readable when more can be sent. Valid after a flush() that left
  /// frames waiting.
  [[nodiscard]] int descriptor() const { return socket_.get(zmq::sockopt::fd); }

 private:
  static std::size_t size_of(const Frame& frame) { return frame.head.size() + frame.body_size(); }

  /// One ZeroMQ message that holds the first `frames` waiting frames, of `bytes` bytes by
  /// size_of().
  struct Message {
    std::size_t frames = 0;
    std::size_t bytes = 0;
    zmq::message_t head;
    std::optional<zmq::message_t> body = std::nullopt;
  };
  /// The number of frames in a pack, and the bytes of its first part.
  struct PackSize {
    std::size_t frames = 0;
    std::size_t bytes = pack_prefix_size;
  };

  void send_waiting() {
    while (!waiting_.empty()) {
      if (!next_) next_ = make_message();
      // If a send fails soon after another send, ZeroMQ may have capacity again and not know it.
      // has_capacity() makes it check.
      if (!send(*next_) && (!has_capacity() || !send(*next_))) return;
      waiting_.erase(waiting_.begin(),
                     waiting_.begin() + static_cast<std::ptrdiff_t>(next_->frames));
      waiting_bytes_ -= next_->bytes;
      next_.reset();
      last_progress_at_ = Clock::now();
    }
  }

  /// Returns false if ZeroMQ has no capacity. ZeroMQ accepts both parts of a message or neither.
  /// Nothing can fail between the parts, because both exist before the first is sent. If the
  /// connection ends between them, ZeroMQ drops the message, and leaks its head.
  bool send(Message& message) {
    const auto more = message.body ? zmq::send_flags::sndmore : zmq::send_flags::none;
    if (!socket_.send(message.head, more | zmq::send_flags::dontwait)) return false;
    if (message.body) socket_.send(*message.body, zmq::send_flags::dontwait);
    return true;
  }
  [[nodiscard]] bool has_capacity() const {
    return (socket_.get(zmq::sockopt::events) & ZMQ_POLLOUT) != 0;
  }

  /// Makes the next message: a pack of as many of the first waiting frames as fit, or the first
  /// frame alone.
  [[nodiscard]] Message make_message() const {
    if (const PackSize size = measure_pack(BodyPart::first); size.frames > 0)
      return size.frames == 1 && waiting_.front().body.empty() ? make_unpacked()
                                                               : make_pack(size, BodyPart::first);
    // Encrypted long frames are not packed: encryption copies their bytes anyway, and is fastest
    // with one range in each message.
    if (options_.keys && !(writers_ != nullptr && writers_->is_ready(peer_)))
      return make_unpacked();
    const PackSize size = measure_pack(BodyPart::second);
    return size.frames > 1 ? make_pack(size, BodyPart::second) : make_unpacked();
  }

  /// Returns how many of the first waiting frames fit in one pack that has their bodies in
  /// `body_part`.
  [[nodiscard]] PackSize measure_pack(BodyPart body_part) const {
    PackSize result;
    std::size_t bodies_bytes = 0;
    for (const Frame& frame : waiting_) {
      const std::size_t size = packed_size(frame, body_part);
      bodies_bytes += frame.body_size();
      const bool fits = body_part == BodyPart::first
                            ? size <= packed_frame_bytes_max
                            : !frame.body.empty() && bodies_bytes <= bodies_bytes_max();
      if (!fits || result.bytes + size > pack_bytes_max) break;
      result.bytes += size;
      ++result.frames;
    }
    return result;
  }
  [[nodiscard]] std::size_t bodies_bytes_max() const {
    return std::min(second_part_bytes_max, options_.part_bytes_max);
  }

  [[nodiscard]] Message make_pack(const PackSize& size, BodyPart body_part) const {
    Message message{.frames = size.frames, .bytes = 0, .head = zmq::message_t{size.bytes}};
    std::vector<Attachment> second_part;
    std::byte* out = write_pack_prefix(static_cast<std::byte*>(message.head.data()));
    for (std::size_t i = 0; i < size.frames; ++i) {
      const Frame& frame = waiting_[i];
      out = write_packed(frame, body_part, out);
      message.bytes += size_of(frame);
      if (body_part == BodyPart::second)
        std::ranges::copy(frame.body, std::back_inserter(second_part));
    }
    if (!second_part.empty()) set_body(message, std::move(second_part));
    return message;
  }

  /// Makes a message of the first waiting frame alone.
  [[nodiscard]] Message make_unpacked() const {
    const Frame& frame = waiting_.front();
    Message message{.frames = 1,
                    .bytes = size_of(frame),
                    .head = zmq::message_t{frame.head.data(), frame.head.size()}};
    if (frame.body_size() > 0) set_body(message, frame.body);
    return message;
  }

  /// Writes the body into the peer's memory if possible, and puts the write's ticket
  /// (fabric_links.hpp) before the head; otherwise makes the body the message's second part.
  void set_body(Message& message, std::vector<Attachment> parts) const {
    const auto ticket = writers_ != nullptr ? writers_->write(peer_, parts) : std::nullopt;
    if (!ticket) {
      message.body = make_body_part(std::move(parts));
      return;
    }
    const TicketPrefix prefix = print_ticket(*ticket);
    zmq::message_t head{prefix.size() + message.head.size()};
    auto* const out = std::ranges::copy(prefix, static_cast<std::byte*>(head.data())).out;
    std::memcpy(out, message.head.data(), message.head.size());
    message.head = std::move(head);
  }

  void connect() {
    using namespace zmq::sockopt;
    socket_ = zmq::socket_t{context_, zmq::socket_type::dealer};
    socket_.set(ipv6, true);
    socket_.set(zmq::sockopt::linger, 0);
    // Makes ZeroMQ accept no frames before it is connected. Until then they wait in waiting_.
    socket_.set(immediate, true);
    // On this socket an honest peer sends only answers of the handshake, so ZeroMQ may receive one
    // message at most, no longer than such an answer.
    socket_.set(rcvhwm, 1);
    socket_.set(maxmsgsize, handshake_answer_bytes_max);
    const int data_max = options_.keys ? data_messages_max : packed_data_messages_max;
    socket_.set(sndhwm, traffic_class_ == TrafficClass::data ? data_max : control_messages_max);
    socket_.set(reconnect_ivl, 100);
    socket_.set(reconnect_ivl_max, 1000);
    socket_.set(connect_timeout, 1000);
    socket_.set(handshake_ivl, 3000);
    // Closes the connection if sent bytes stay unacknowledged for 1.5 s, as in a partition. Idle
    // connections are not affected.
    socket_.set(tcp_maxrt, 1500);
    if (const auto& keys =
            traffic_class_ == TrafficClass::handshake ? options_.handshake_keys : options_.keys) {
      socket_.set(curve_publickey, buffer_of(keys->public_key));
      socket_.set(curve_secretkey, buffer_of(keys->secret_key));
      socket_.set(curve_serverkey, buffer_of(*peer_.key));
    }
    socket_.connect(peer_.address);
  }

  /// Returns true if a waiting frame has the same packet.
  [[nodiscard]] bool is_already_queued(const Frame& frame) const {
    return frame.packet && std::ranges::any_of(waiting_, [&](const Frame& other) {
             return other.packet == frame.packet;
           });
  }

  void reconnect_if_stuck() {
    if (waiting_.empty() || Clock::now() < last_progress_at_ + reconnect_after) return;
    last_progress_at_ = Clock::now();
    connect();
  }

  zmq::context_t& context_;
  const Peer peer_;
  const TransportOptions& options_;
  const TrafficClass traffic_class_;
  FabricWriters* const writers_;
  zmq::socket_t socket_;
  std::deque<Frame> waiting_;
  std::size_t waiting_bytes_ = 0;
  /// The message of the first waiting frames, if ZeroMQ was offered it and has not accepted it yet.
  std::optional<Message> next_;
  /// When a frame was added last.
  Clock::time_point last_used_at_;
  /// When ZeroMQ last accepted a message, when a frame was last added to an empty queue, or when
  /// this object last connected, whichever was last.
  Clock::time_point last_progress_at_ = Clock::now();
};

}  // namespace starling::wire
