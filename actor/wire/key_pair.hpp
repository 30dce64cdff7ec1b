/// CURVE key pairs (https://rfc.zeromq.org/spec/26/): a public and a secret key of 32 bytes each,
/// for Curve25519.
#pragma once

#include "starling/actor/wire/peer.hpp"
#include "starling/actor/wire/secret.hpp"

namespace starling::wire {

struct KeyPair {
  Key public_key;
  SecretKey secret_key;
};

/// Makes a new CURVE key pair from the system's random generator.
[[nodiscard]] KeyPair make_key_pair();

}  // namespace starling::wire
