/// One's end of the network: a transport that hears nobody but holders of the cluster's
/// certificates, and that introduces itself to those who do not know it. Nodes and clients have one
/// each. Without a key file nothing is encrypted, and everyone is heard.
///
/// Whoever is sent to, and was not heard of lately, is handed our certificate at its gate, and
/// hands us its own. What is sent to somebody whose certificate is not known yet is lost, like a
/// frame that the network loses. Revocations are passed on to everyone in touch as they become
/// known.
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
  /// Where others reach it; empty: where it listens.
  std::string advertise = {};
  std::optional<NodeSecrets> secrets = std::nullopt;
  /// Called when revocations were learnt, on whichever thread they came by; must not take long.
  std::function<void(const Merged&)> on_revoked = {};
  /// The time by which certificates are judged. May be empty without secrets.
  std::function<UtcSeconds()> utc_now = {};
};

/// Who has sent a frame.
struct Sender {
  /// Absent where nothing is encrypted.
  std::optional<Key> key;
  Role role = Role::node;
  /// Whether `address`, as wire::print has it, may be its own.
  [[nodiscard]] bool may_be_at(const std::string& address) const;
};

/// Thread-safe. Its end closes all connections.
class Endpoint {
 public:
  /// Called on a thread of the endpoint's; must not throw, and not take long.
  using Receiver = std::function<void(const wire::FrameView& frame, const Sender& sender)>;

  /// An Error says what cannot be had: the address, or what is wrong with the certificate.
  static Result<std::unique_ptr<Endpoint>> open(EndpointOptions options, Receiver receiver);
  ~Endpoint();

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Where others reach it, and under which key: as wire::print has it.
  [[nodiscard]] const std::string& address() const noexcept;

  /// To an address of that form; never waits. See Transport::send().
  void send(const std::string& address, wire::TrafficClass traffic_class,
            std::span<wire::Frame> frames);
  void send(const std::string& address, wire::TrafficClass traffic_class, wire::Frame frame) {
    send(address, traffic_class, {&frame, 1});
  }
  /// Closes the connections to it; sending opens them again.
  void forget(const std::string& address);

  /// Whether what holders of that key say is heard now. Requires: there are keys.
  [[nodiscard]] bool admits(const Key& key) const;
  /// The name in the certificate of that key; empty where none lets it in now. Requires: there are
  /// keys.
  [[nodiscard]] std::string name_of(const Key& key) const;
  /// Makes revocations count here, and tells those in touch.
  void revoke(std::span<const Revocation> revocations);
  /// Has the peer and this one tell each other the revocations that only one of them knows.
  void compare_revocations(const std::string& address);
  /// How often a peer was found to know the same revocations.
  [[nodiscard]] std::uint64_t agreements() const noexcept;

  [[nodiscard]] wire::TransportCounts counts() const;

 private:
  class Core;
  explicit Endpoint(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// The addresses, as wire::print has them, of `NAME@HOST:PORT` or `HOST:PORT` as people write them:
/// one for each key that NAME may have. Without secrets there is no name. `address` is HOST:PORT
/// with its scheme. An Error names those who are known.
[[nodiscard]] Result<std::vector<std::string>> addresses_of(
    const std::string& name, const std::string& address, const std::optional<NodeSecrets>& secrets,
    UtcSeconds now);

}  // namespace starling::security
