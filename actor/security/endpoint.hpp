/// A transport that takes frames from holders of the cluster's certificates only, and that
/// introduces itself to peers that do not know it. Each node and each client has one. Without a key
/// file nothing is encrypted, and frames from everyone are taken.
///
/// Before it sends to a peer that is new or has been silent for 10 s, the endpoint hands the peer
/// our certificate, and the peer answers with its own. Up to 1 MiB of frames to each peer wait for
/// that answer; more are lost, like frames that the network loses. New revocations are passed on to
/// every peer in touch.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starling/actor/security/admission.hpp"
#include "starling/actor/security/key_file.hpp"
#include "starling/actor/wire/transport.hpp"
#include "starling/base/result.hpp"

namespace starling::security {

struct EndpointOptions {
  /// `tcp://HOST:PORT`; port `*` takes a free one.
  std::string listen = "tcp://127.0.0.1:*";
  /// The address at which others reach it; empty: the one where it listens.
  std::string advertise = {};
  std::optional<NodeSecrets> secrets = std::nullopt;
  /// Called with new revocations, on the thread that brought them; must not take long.
  std::function<void(const Merged&)> on_revoked = {};
  /// The clock by which certificates are checked. May be empty without secrets.
  std::function<UtcSeconds()> utc_now = {};
};

/// The sender of a frame.
struct Sender {
  /// Absent where nothing is encrypted.
  std::optional<Key> key;
  Role role = Role::node;
  /// Whether `address`, as wire::print gives it, may be the sender's.
  [[nodiscard]] bool may_be_at(const std::string& address) const;
};

/// Thread-safe. Its destructor closes all connections.
class Endpoint {
 public:
  /// Called on a thread of the endpoint's; must not throw, and not take long.
  using Receiver = std::function<void(const wire::FrameView& frame, const Sender& sender)>;

  /// An Error says why it cannot: the address cannot be had, or the certificate is not valid.
  static Result<std::unique_ptr<Endpoint>> open(EndpointOptions options, Receiver receiver);
  ~Endpoint();

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// The address and the key by which others reach it, as wire::print gives them.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Sends to an address of that form; never blocks. See Transport::send().
  void send(const std::string& address, wire::TrafficClass traffic_class,
            std::span<wire::Frame> frames);
  void send(const std::string& address, wire::TrafficClass traffic_class, wire::Frame frame) {
    send(address, traffic_class, {&frame, 1});
  }
  /// Closes the connections to it; sending opens them again.
  void forget(const std::string& address);

  /// Whether frames from the key's holder are taken now. Requires: there are keys.
  [[nodiscard]] bool admits(const Key& key) const;
  /// The name in the certificate of that key; empty where no certificate admits it now. Requires:
  /// there are keys.
  [[nodiscard]] std::string name_of(const Key& key) const;
  /// Applies revocations here, and sends the new ones to every peer in touch.
  void revoke(std::span<const Revocation> revocations);
  /// Has the peer and this endpoint exchange the revocations that only one of them knows.
  void compare_revocations(const std::string& address);
  /// How often a peer was found to know the same revocations.
  [[nodiscard]] std::uint64_t agreements() const noexcept;

  [[nodiscard]] wire::TransportCounts counts() const;

 private:
  class Core;
  explicit Endpoint(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// Returns the addresses, as wire::print gives them, of `NAME@HOST:PORT` or `HOST:PORT` as people
/// write them: one for each key that NAME may have. Without secrets there is no name. `address` is
/// HOST:PORT with its scheme. An Error lists the known names.
[[nodiscard]] Result<std::vector<std::string>> addresses_of(
    const std::string& name, const std::string& address, const std::optional<NodeSecrets>& secrets,
    UtcSeconds now);

}  // namespace starling::security
