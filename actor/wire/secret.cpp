#include "starling/actor/wire/secret.hpp"

#include <sodium.h>

#include <atomic>
#include <new>

namespace starling::wire {
namespace {

std::atomic<bool> all_locked = true;

}  // namespace

namespace detail {

std::uint8_t* allocate_secret(std::size_t size) {
  static const bool is_ready = sodium_init() >= 0;
  void* secret = is_ready ? sodium_malloc(size) : nullptr;
  if (secret == nullptr) throw std::bad_alloc{};
  // sodium_malloc() has tried to lock the memory, but does not report whether it could.
  if (sodium_mlock(secret, size) != 0) all_locked = false;
  std::memset(secret, 0, size);
  return static_cast<std::uint8_t*>(secret);
}

void free_secret(std::uint8_t* secret) noexcept { sodium_free(secret); }

}  // namespace detail

KeyPair make_key_pair() {
  KeyPair keys{};
  crypto_box_keypair(keys.public_key.data(), keys.secret_key.data());
  return keys;
}

bool secrets_are_locked() { return all_locked; }
void wipe(std::string& text) { sodium_memzero(text.data(), text.size()); }
void wipe(void* bytes, std::size_t size) { sodium_memzero(bytes, size); }

}  // namespace starling::wire
