/// Carries frames between nodes over TCP, in ZeroMQ's protocol: encrypted and authenticated by
/// CURVE where it has keys. For each peer two DEALERs of ZeroMQ's send, opened on demand: one for
/// control and one for data, so that a burst of tensors keeps no probe waiting. An Inbox receives,
/// in a thread of the transport's: what strangers send takes bounded memory there (inbox.hpp).
/// Whoever sends where nothing waits does it on the spot; what waits is the transport's.
///
/// Frames of one traffic class to one peer arrive in order, each at most once; they may get lost,
/// with a broken connection or where more is sent than the network takes. What comes is what was
/// sent.
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

/// Where packets of jobs go: tensors keep nothing else waiting.
[[nodiscard]] inline TrafficClass traffic_class_of(const Frame& packet) {
  return packet.body.empty() ? TrafficClass::control : TrafficClass::data;
}

/// A frame that has come. Valid during the call that brings it.
struct Incoming {
  FrameView frame;
  /// Whose it is; absent where nothing is encrypted.
  std::optional<Key> key;
};

struct TransportOptions {
  /// `tcp://HOST:PORT`; port `*` takes a free one. Host `*` is every interface.
  std::string listen = "tcp://127.0.0.1:*";
  /// Absent: nothing is encrypted, and everyone is heard.
  std::optional<KeyPair> keys = std::nullopt;
  /// The key pair of handshake connections. Absent: no handshake is sent.
  std::optional<KeyPair> gate = std::nullopt;
  /// Whether a client with this key may connect, and whether a frame that came from it is still
  /// taken: what is revoked while it is connected is not heard any more. Called on the transport's
  /// thread.
  std::function<bool(const Key&)> admits = {};
  /// A longer head, body or pack (pack.hpp) is not received; the connection it came by is closed.
  std::size_t part_bytes_max = std::size_t{8} << 20U;
  /// Of messages that have begun to come, from all together: beyond that the connection is closed
  /// whose message began first.
  std::size_t unfinished_bytes_max = std::size_t{32} << 20U;
  /// Of connections that others make: beyond that the one is closed that was not heard for longest,
  /// before all others those that have never brought a message. Never more than half of the
  /// descriptors that the process may have.
  std::size_t inbound_max = 32'768;
  /// The most bytes that may wait to be sent to one peer in each traffic class; more is dropped.
  std::size_t queue_bytes_max = std::size_t{32} << 20U;
  /// Beyond so many peers, the connections to the one used least lately are closed.
  std::size_t peers_max = 1024;
  /// A connection that nothing was sent by for so long is closed, and opened again when need be.
  std::chrono::milliseconds idle_max = std::chrono::minutes{1};
};

struct TransportCounts {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  /// Frames dropped for want of room to wait in.
  std::uint64_t dropped = 0;
  /// Clients turned away for their keys, frames of such as were let in before, and connections that
  /// were closed for want of room or for what came by them.
  std::uint64_t refused = 0;
};

/// Thread-safe. Its end closes all connections; what ZeroMQ has not sent 50 ms later is dropped.
class Transport {
 public:
  /// Called on the transport's thread; must not throw, and not take long.
  using Receiver = std::function<void(const Incoming&)>;

  /// Listens. An Error says what cannot be had.
  static Result<std::unique_ptr<Transport>> open(const TransportOptions& options,
                                                 Receiver receiver);
  ~Transport();

  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// The address listened at, with its port.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Sends when it can; never waits. Frames that are handed in together travel together, but long
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
