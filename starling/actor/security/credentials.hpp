/// What nodes and clients say to one another about who belongs to the cluster. Plain values; any
/// thread. All that is heard is untrusted: Endpoint checks it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "starling/actor/security/certificate.hpp"
#include "starling/actor/wire/frame.hpp"

namespace starling::security {

/// This is who I am: said at the gate to those who may not know.
struct Introduction {
  Certificate certificate;
  /// Whether it is the answer to one: I know you now.
  bool answers = false;
  /// That the certificate's holder says it, and from there: certificates are no secret.
  Proof proof{};
};
/// The revocations that I know, in short. Answered by all that you know where it differs from
/// yours.
struct RevocationsDigest {
  std::uint64_t digest = 0;
  /// Whether it is an answer itself.
  bool answers = false;
};
struct Revocations {
  std::vector<Revocation> revocations;
};

struct CredentialMessage {
  /// Where the sender is reached, as wire::print has it.
  std::string address;
  std::variant<Introduction, RevocationsDigest, Revocations> body;
};

[[nodiscard]] wire::Frame encode(const CredentialMessage& message);
[[nodiscard]] Result<CredentialMessage> decode_credentials(const wire::FrameView& frame);

}  // namespace starling::security
