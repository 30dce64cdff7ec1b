#include "starling/actor/wire/key_pair.hpp"

#include <sodium.h>

namespace starling::wire {

KeyPair make_key_pair() {
  KeyPair keys{};
  crypto_box_keypair(keys.public_key.data(), keys.secret_key.data());
  return keys;
}

}  // namespace starling::wire
