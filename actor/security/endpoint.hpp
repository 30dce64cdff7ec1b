/// A transport that accepts frames only from holders of the cluster's certificates, and that
/// introduces itself to peers that do not know it. Each node and each client has one. Without a key
/// file nothing is encrypted, and frames from everyone are accepted.
///
/// Before the endpoint sends frames to a peer that is new or has been silent for 10 s, it sends the
/// peer its certificate, and the peer answers with the peer's certificate. Up to 1 MiB of frames to
/// each peer wait for that answer; further frames are dropped, as if the network had lost them. The
/// endpoint passes new revocations on to every peer that it remembers.
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
  /// `tcp://HOST:PORT`; port `*` is a free port.
  std::string listen = "tcp://127.0.0.1:*";
  /// The address at which others reach the endpoint. Empty: the address at which it listens.
  std::string advertise = {};
  /// The contents of the key file. Absent: nothing is encrypted.
  std::optional<NodeSecrets> secrets = std::nullopt;
  /// Called with new revocations, on the thread that received them or called revoke(). Must not
  /// take long.
  std::function<void(const MergeResult&)> on_revoked = {};
  /// The clock for checking certificates. May be empty if there are no secrets.
  std::function<UtcSeconds()> utc_now = {};
  /// One-sided writes between members; they need secrets. The endpoint sets `address` and
  /// `is_member`.
  wire::FabricOptions fabric = {};
};

/// The sender of a frame.
struct Sender {
  /// The sender's public key; absent if nothing is encrypted.
  std::optional<Key> key;
  Role role = Role::node;
  /// True if `address`, as wire::print() prints it, contains the sender's key; always true if
  /// nothing is encrypted.
  [[nodiscard]] bool may_use_address(const std::string& address) const;
};

/// Thread-safe. Its destructor closes all connections.
class Endpoint {
 public:
  /// Called on the endpoint's thread. Must not throw, and must not take long. Also gets the frames
  /// for which wire::kind_of() returns an Error, such as those of another version, even if their
  /// sender has presented no certificate yet: it may report them, but must not use them.
  using Receiver = std::function<void(const wire::FrameView& frame, const Sender& sender)>;

  /// Makes an endpoint that listens. Returns an Error if it cannot listen at the address, or if the
  /// certificate is not valid.
  static Result<std::unique_ptr<Endpoint>> open(EndpointOptions options, Receiver receiver);
  ~Endpoint();

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// The address and the public key by which others reach it, as wire::print() prints them.
  [[nodiscard]] const std::string& address() const noexcept;

  /// Sends to `address`, as wire::print() prints it; never blocks. See Transport::send().
  void send(const std::string& address, wire::TrafficClass traffic_class,
            std::span<wire::Frame> frames);
  void send(const std::string& address, wire::TrafficClass traffic_class, wire::Frame frame) {
    send(address, traffic_class, {&frame, 1});
  }
  /// Closes the connections to `address`. Sending opens them again.
  void forget(const std::string& address);

  /// True if frames from the holder of a public key are accepted now. Requires: there are secrets.
  [[nodiscard]] bool admits(const Key& key) const;
  /// The name in the certificate of a public key; empty if no certificate admits the key now.
  /// Requires: there are secrets.
  [[nodiscard]] std::string name_of(const Key& key) const;
  /// Returns an Error if this endpoint's own certificate is not valid now: peers then refuse it.
  [[nodiscard]] Result<void> check_certificate() const;
  /// Applies revocations to this endpoint, and sends those that are new to every peer that it
  /// remembers.
  void revoke(std::span<const Revocation> revocations);
  /// Sends the peer a digest of the known revocations. If the peer's digest differs, both send each
  /// other all revocations that they know.
  void compare_revocations(const std::string& address);
  /// How often a digest received from a peer was equal to this endpoint's.
  [[nodiscard]] std::uint64_t digest_matches() const noexcept;

  [[nodiscard]] wire::TransportCounts counts() const;

 private:
  class Core;
  explicit Endpoint(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// Returns the addresses, as wire::print() prints them, of the node that users call
/// `NAME@HOST:PORT` or `HOST:PORT`: one address for each public key that the node `name` may have.
/// If `name` is empty, the node must be the only one in `secrets`. `address` is `tcp://HOST:PORT`.
/// Without secrets, `name` must be empty. An Error lists the known names.
[[nodiscard]] Result<std::vector<std::string>> addresses_of(
    const std::string& name, const std::string& address, const std::optional<NodeSecrets>& secrets,
    UtcSeconds now);

}  // namespace starling::security
