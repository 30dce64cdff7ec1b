/// The messages by which nodes and clients exchange certificates and revocations. Plain values; any
/// thread. All that is received is untrusted: Endpoint validates it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "starling/actor/security/certificate.hpp"
#include "starling/actor/wire/frame.hpp"

namespace starling::security {

/// Presents the sender's certificate to a peer that may not know it, in a handshake.
struct Introduction {
  Certificate certificate;
  /// Whether it answers an introduction: the sender knows the receiver's certificate now.
  bool answers = false;
  /// Proves that the certificate's holder sent it, and from which address: certificates are not
  /// secret.
  Proof proof{};
};
/// A hash of the revocations that the sender knows. A receiver whose own hash differs answers with
/// all revocations that it knows.
struct RevocationsDigest {
  std::uint64_t digest = 0;
  /// Whether it answers another digest.
  bool answers = false;
};
struct Revocations {
  std::vector<Revocation> revocations;
};

struct CredentialMessage {
  /// The sender's address, as wire::print gives it.
  std::string address;
  std::variant<Introduction, RevocationsDigest, Revocations> body;
};

[[nodiscard]] wire::Frame encode(const CredentialMessage& message);
[[nodiscard]] Result<CredentialMessage> decode_credentials(const wire::FrameView& frame);

}  // namespace starling::security
