/// The messages by which nodes and clients exchange certificates and revocations. Plain values;
/// thread-safe to read. Received messages are untrusted until Endpoint has validated them.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "starling/actor/security/certificate.hpp"
#include "starling/actor/wire/frame.hpp"

namespace starling::security {

/// Presents the sender's certificate to a peer that may not know it. Sent in the traffic class
/// handshake.
struct Introduction {
  Certificate certificate;
  /// True if this answers the receiver's introduction: the sender then has the receiver's
  /// certificate.
  bool is_answer = false;
  /// A random number that each endpoint draws when it opens. A number other than the sender's
  /// previous one means that the sender has restarted.
  std::uint64_t instance = 0;
  /// Proves that the certificate's holder sent this message, and from which address. A certificate
  /// alone proves nothing, because certificates are not secret.
  Proof proof{};

  static constexpr auto fields(auto& m) {
    return std::tie(m.certificate, m.is_answer, m.instance, m.proof);
  }
};
/// A hash of the revocations that the sender knows. A receiver whose own hash differs sends all
/// revocations that it knows, unless it has sent too many such lists shortly before. A receiver
/// answers with its own digest unless the message is itself an answer.
struct RevocationsDigest {
  std::uint64_t digest = 0;
  /// True if this answers the receiver's digest.
  bool is_answer = false;

  static constexpr auto fields(auto& m) { return std::tie(m.digest, m.is_answer); }
};
/// Some of the revocations that the sender knows.
struct Revocations {
  std::vector<Revocation> revocations;

  static constexpr auto fields(auto& m) { return std::tie(m.revocations); }
};

struct CredentialMessage {
  /// The sender's address, as wire::print gives it.
  std::string address;
  std::variant<Introduction, RevocationsDigest, Revocations> body;

  static constexpr auto fields(auto& m) { return std::tie(m.address, m.body); }
};

[[nodiscard]] wire::Frame encode(const CredentialMessage& message);
[[nodiscard]] Result<CredentialMessage> decode_credentials(const wire::FrameView& frame);

}  // namespace starling::security
