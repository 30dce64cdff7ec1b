/// CURVE key pairs (https://rfc.zeromq.org/spec/26/): two numbers of 32 bytes on Curve25519.
#pragma once

#include "starling/actor/wire/peer.hpp"
#include "starling/actor/wire/secret.hpp"

namespace starling::wire {

struct KeyPair {
  Key public_key;
  SecretKey secret_key;
};

/// A new CURVE key pair, from the system's randomness.
[[nodiscard]] KeyPair make_keys();

}  // namespace starling::wire
