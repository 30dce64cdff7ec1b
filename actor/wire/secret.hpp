/// The bytes of secret keys, in memory from libsodium. This memory is locked if the system allows
/// it, so that it is never written to swap; it is left out of core dumps; and it is wiped when it
/// is freed. Plain values; thread-safe to read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "starling/actor/wire/peer.hpp"

namespace starling::wire {

namespace detail {
/// Allocates `size` zeros. Throws std::bad_alloc.
[[nodiscard]] std::uint8_t* allocate_secret(std::size_t size);
void free_secret(std::uint8_t* secret) noexcept;
}  // namespace detail

/// Returns true if the memory of all secrets that were made so far could be locked.
[[nodiscard]] bool secrets_are_locked();
/// Overwrite ordinary memory that held a secret, for example its printed form, with zeros.
void wipe(std::string& text);
void wipe(void* bytes, std::size_t size);

/// N secret bytes, with the interface of std::array.
template <std::size_t N>
class SecretBytes {
 public:
  using value_type = std::uint8_t;

  SecretBytes() : bytes_(detail::allocate_secret(N)) {}
  SecretBytes(const std::array<std::uint8_t, N>& bytes) : SecretBytes() {
    std::memcpy(bytes_, bytes.data(), N);
  }
  SecretBytes(const SecretBytes& other) : SecretBytes() { *this = other; }
  SecretBytes& operator=(const SecretBytes& other) {
    if (this != &other) std::memcpy(bytes_, other.bytes_, N);
    return *this;
  }
  ~SecretBytes() { detail::free_secret(bytes_); }

  [[nodiscard]] std::uint8_t* data() noexcept { return bytes_; }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return bytes_; }
  [[nodiscard]] static constexpr std::size_t size() noexcept { return N; }
  [[nodiscard]] std::uint8_t* begin() noexcept { return bytes_; }
  [[nodiscard]] std::uint8_t* end() noexcept { return bytes_ + N; }
  [[nodiscard]] const std::uint8_t* begin() const noexcept { return bytes_; }
  [[nodiscard]] const std::uint8_t* end() const noexcept { return bytes_ + N; }
  std::uint8_t& operator[](std::size_t i) { return bytes_[i]; }
  void fill(std::uint8_t value) { std::memset(bytes_, value, N); }

  bool operator==(const SecretBytes& other) const noexcept {
    return std::memcmp(bytes_, other.bytes_, N) == 0;
  }

 private:
  std::uint8_t* bytes_;
};

/// A CURVE secret key.
using SecretKey = SecretBytes<32>;

/// A CURVE key pair (https://rfc.zeromq.org/spec/26/): a public and a secret key for Curve25519.
struct KeyPair {
  Key public_key;
  SecretKey secret_key;
};

/// Makes a new CURVE key pair from the system's random generator.
[[nodiscard]] KeyPair make_key_pair();

}  // namespace starling::wire
