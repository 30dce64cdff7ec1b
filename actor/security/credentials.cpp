#include "starling/actor/security/credentials.hpp"

#include "starling/actor/security/certificate_archive.hpp"
#include "starling/actor/wire/framing.hpp"

namespace starling::security {

template <class A>
void serialize(A& archive, Introduction& m) {
  archive(m.certificate, m.answers);
  put_or_get(archive, m.proof);
}
template <class A>
void serialize(A& archive, RevocationsDigest& m) {
  archive(m.digest, m.answers);
}
template <class A>
void serialize(A& archive, Revocations& m) {
  archive(m.revocations);
}
template <class A>
void serialize(A& archive, CredentialMessage& m) {
  archive(m.address, m.body);
}

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
