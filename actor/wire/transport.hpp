/// Carries frames between nodes over TCP, in ZeroMQ's protocol: encrypted and authenticated by
/// CURVE if the node has keys. Each peer has up to three ZeroMQ DEALERs, opened on demand, one for
/// each traffic class, so that a burst of tensors keeps no probe waiting. An Inbox receives, in a
/// thread of the transport's: what unauthenticated peers send takes bounded memory there
/// (inbox.hpp). Frames are sent in the caller's thread if no others wait before them, and else in
/// the transport's.
///
/// Frames of one traffic class to one peer arrive in order, each at most once and unaltered; they
/// may get lost, with a broken connection or if more is sent than the network takes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "starling/actor/wire/frame.hpp"
#include "starling/actor/wire/key_pair.hpp"
#include "starling/actor/wire/peer.hpp"
#include "starling/base/result.hpp"

namespace starling::wire {

/// The traffic class of a job's packet: a packet with tensors is data, so that it delays no control
/// message.
[[nodiscard]] inline TrafficClass traffic_class_of(const Frame& packet) {
  return packet.body.empty() ? TrafficClass::control : TrafficClass::data;
}

/// A frame that has come. Valid during the call of the Receiver.
struct Incoming {
  FrameView frame;
  /// The sender's key; absent if nothing is encrypted.
  std::optional<Key> key;
};

struct TransportOptions {
  /// `tcp://HOST:PORT`; port `*` takes a free one. Host `*` is every interface.
  std::string listen = "tcp://127.0.0.1:*";
  /// Absent: nothing is encrypted, and frames from everyone are taken.
  std::optional<KeyPair> keys = std::nullopt;
  /// The key pair of handshake connections. Absent: no handshake is sent.
  std::optional<KeyPair> handshake_keys = std::nullopt;
  /// Whether a client with this key may connect, and whether a frame that came from it is still
  /// taken: frames under a key that is revoked while connected are dropped. Called on the
  /// transport's thread.
  std::function<bool(const Key&)> admits = {};
  /// The most bytes of a part of a message: head, body or pack (pack.hpp); a connection that sends
  /// a longer part is closed.
  std::size_t part_bytes_max = std::size_t{8} << 20U;
  /// The most bytes held of unfinished messages, over all connections. Beyond this limit the
  /// connection whose message began first is closed, and before it any that has never sent a
  /// message.
  std::size_t unfinished_bytes_max = std::size_t{32} << 20U;
  /// The most connections that others make. Beyond this limit the connection that has been silent
  /// for longest is closed, and before it any that has never sent a message. Never more than half
  /// of the descriptors that the process may have.
  std::size_t inbound_max = 32'768;
  /// The most bytes that may wait to be sent to one peer in each traffic class; more is dropped.
  std::size_t queue_bytes_max = std::size_t{32} << 20U;
  /// Beyond this number of peers, the connections to the least recently used peer are closed.
  std::size_t peers_max = 1024;
  /// A connection by which nothing was sent for this long is closed, and opened again on demand.
  std::chrono::milliseconds idle_max = std::chrono::minutes{1};
};

struct TransportCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  /// Frames dropped because they found no capacity to wait, or could not be sent.
  std::uint64_t dropped = 0;
  /// Clients refused for their keys, frames of clients whose key is no longer admitted, and
  /// connections that were closed for lack of capacity or for what was received by them.
  std::uint64_t refused = 0;
};

/// Thread-safe. Its destructor closes all connections; frames that ZeroMQ has not sent 50 ms later
/// are dropped.
class Transport {
 public:
  /// Called on the transport's thread; must not throw, and not take long.
  using Receiver = std::function<void(const Incoming&)>;

  /// Listens. An Error says why it cannot.
  static Result<std::unique_ptr<Transport>> open(const TransportOptions& options,
                                                 Receiver receiver);
  ~Transport();

  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// The address that the transport listens at, with its port.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Sends as soon as possible; never blocks. Frames of one call travel in one pack, except long
  /// ones that are encrypted.
  void send(const Peer& to, TrafficClass traffic_class, std::span<Frame> frames);
  void send(const Peer& to, TrafficClass traffic_class, Frame frame) {
    send(to, traffic_class, {&frame, 1});
  }
  /// Closes the connections to a peer and drops what waits for it.
  void forget(const Peer& peer);

  [[nodiscard]] TransportCounts counts() const;

 private:
  class Thread;
  explicit Transport(std::unique_ptr<Thread> thread);

  std::unique_ptr<Thread> thread_;
};

}  // namespace starling::wire
