#include "starling/actor/security/credentials.hpp"

#include "starling/actor/security/certificate_archive.hpp"
#include "starling/actor/wire/framing.hpp"

namespace starling::security {

wire::Frame encode(const CredentialMessage& message) {
  return wire::encode_as(wire::Kind::credentials,
                         [&](wire::Encoder& encoder) { encoder(message); });
}

Result<CredentialMessage> decode_credentials(const wire::FrameView& frame) {
  return wire::decode_as<CredentialMessage>(
      frame, wire::Kind::credentials,
      [](wire::Decoder& decoder, CredentialMessage& message) { decoder(message); });
}

}  // namespace starling::security
