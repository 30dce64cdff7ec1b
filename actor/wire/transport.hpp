/// Carries frames between nodes over TCP, in ZeroMQ's protocol: encrypted and authenticated by
/// CURVE if the node has keys. For each peer there are up to three ZeroMQ DEALERs, opened on
/// demand, one for each traffic class, so that no probe waits behind a burst of tensors. An Inbox
/// receives in the transport's thread, and bounds the memory that unauthenticated peers can take
/// (inbox.hpp). Frames are sent in the caller's thread if no other frames wait to be sent before
/// them, and otherwise in the transport's thread.
///
/// With TransportOptions::fabric, bodies of tensors are written into memory of the peer instead,
/// where that is possible; send() then returns after the write.
///
/// Frames of one traffic class to one peer arrive in order, each at most once and unaltered. Frames
/// get lost when a connection breaks, or when a peer is sent more than the network carries.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "starling/actor/fabric/messages.hpp"
#include "starling/actor/fabric/provider.hpp"
#include "starling/actor/wire/frame.hpp"
#include "starling/actor/wire/peer.hpp"
#include "starling/actor/wire/secret.hpp"
#include "starling/base/result.hpp"

namespace starling::wire {

/// Returns the traffic class of a frame of a job: data if it has tensors, so that it delays no
/// control message; otherwise control.
[[nodiscard]] inline TrafficClass traffic_class_of(const Frame& frame) {
  return frame.body.empty() ? TrafficClass::control : TrafficClass::data;
}

/// A received frame. Valid only during the call of the Receiver.
struct IncomingFrame {
  FrameView frame;
  /// The sender's public key; absent if nothing is encrypted.
  std::optional<Key> key;
};

/// How bodies are written into the memory of peers, beside ZeroMQ. Only peers that use the same
/// provider and hold admitted keys exchange bodies so.
struct FabricOptions {
  /// Absent: all bodies travel by ZeroMQ.
  std::optional<fabric::Provider> provider = std::nullopt;
  /// True if bodies may go to other hosts, without encryption.
  bool may_leave_host = false;
  /// The address at which peers reach this transport. Empty: the address at which it listens.
  std::string address = {};
  /// Returns true if the holder of an admitted key may write into this process. Empty: every holder
  /// may, except a holder of the handshake key. Called on the transport's thread.
  std::function<bool(const Key&)> is_member = {};
  /// Shorter bodies travel by ZeroMQ.
  std::size_t body_bytes_min = std::size_t{64} << 10U;
  /// The layout of the region, the memory of this process that one peer writes to. Each peer has
  /// one.
  fabric::SlotLayout layout = {};
  /// The most bytes of all regions of the process. Peers for whose regions no bytes are left send
  /// by ZeroMQ.
  std::size_t region_bytes_max = std::size_t{1} << 30U;
};

struct TransportOptions {
  /// Where to listen: `tcp://HOST:PORT`. Host `*` is every interface, port `*` a free port.
  std::string listen = "tcp://127.0.0.1:*";
  /// The node's key pair. Absent: nothing is encrypted, and frames from everyone are received.
  std::optional<KeyPair> keys = std::nullopt;
  /// The key pair of handshake connections. Absent: no handshake is sent.
  std::optional<KeyPair> handshake_keys = std::nullopt;
  /// Returns true if a client with this public key is admitted. Called when a client connects, and
  /// for each message, so that messages under a key that was revoked meanwhile are dropped. Called
  /// on the transport's thread. Empty: no client with a key is admitted.
  std::function<bool(const Key&)> admits = {};
  /// The most bytes of a message part: head, body or pack (pack.hpp). A connection that sends a
  /// longer part is closed.
  std::size_t part_bytes_max = std::size_t{8} << 20U;
  /// The most bytes held of unfinished messages, over all connections. Beyond this limit the
  /// connection whose unfinished message began first is closed; connections that have never sent a
  /// whole message are closed before all others.
  std::size_t unfinished_bytes_max = std::size_t{32} << 20U;
  /// The most connections from peers, but at most half of the descriptors that the process may
  /// have. Beyond this limit the connection that has been silent for the longest time is closed;
  /// connections that have never sent a whole message are closed before all others.
  std::size_t inbound_max = 32'768;
  /// The most bytes that may wait to be sent to one peer in one traffic class. Further frames are
  /// dropped.
  std::size_t queue_bytes_max = std::size_t{32} << 20U;
  /// Beyond this number of peers, the connections to the least recently used peer are closed.
  std::size_t peers_max = 1024;
  /// A connection to a peer is closed if nothing was sent on it for this long, and opened again on
  /// demand.
  std::chrono::milliseconds idle_max = std::chrono::minutes{1};
  /// One-sided writes, beside ZeroMQ. They need `keys`.
  FabricOptions fabric = {};
};

/// Counts since the transport was opened.
struct TransportCounts {
  /// Frames that were queued to be sent, and frames that were received.
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  /// Frames that were dropped because a queue was full, or because they could not be sent.
  std::uint64_t dropped = 0;
  /// Clients whose keys were not admitted, messages whose sender's key is not admitted any more,
  /// and connections closed for lack of capacity, for a slow handshake, or because of the bytes
  /// received on them.
  std::uint64_t refused = 0;
  /// Messages whose bodies were written into memory of the peer, and such messages received.
  std::uint64_t written = 0;
  std::uint64_t read = 0;
};

/// Thread-safe. Its destructor closes all connections; frames that ZeroMQ has not sent 50 ms later
/// are dropped.
class Transport {
 public:
  /// Called on the transport's thread. Must not throw, and must not take long.
  using Receiver = std::function<void(const IncomingFrame&)>;

  /// Makes a transport that listens at `options.listen`. Returns an Error that says why it cannot.
  static Result<std::unique_ptr<Transport>> open(const TransportOptions& options,
                                                 Receiver receiver);
  ~Transport();

  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// The address at which the transport listens, with the actual port.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Sends frames as soon as possible; never blocks. Frames of one call travel in packs (pack.hpp),
  /// except long frames if they are encrypted.
  void send(const Peer& to, TrafficClass traffic_class, std::span<Frame> frames);
  void send(const Peer& to, TrafficClass traffic_class, Frame frame) {
    send(to, traffic_class, {&frame, 1});
  }
  /// Closes the connections to a peer, and drops the frames that wait for it.
  void forget(const Peer& peer);

  [[nodiscard]] TransportCounts counts() const;

 private:
  class Impl;
  explicit Transport(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace starling::wire
