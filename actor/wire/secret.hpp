/// The bytes of secret keys, in memory of libsodium's that is locked, where the system allows it,
/// so that it is never written to swap; that no core dump contains; and that is wiped when it is
/// freed. Plain values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace starling::wire {

namespace detail {
/// `size` zeros. Throws std::bad_alloc.
[[nodiscard]] std::uint8_t* take_secret(std::size_t size);
void give_secret(std::uint8_t* secret) noexcept;
}  // namespace detail

/// Whether all secrets so far could be locked.
[[nodiscard]] bool secrets_are_locked();
/// Overwrites what a secret was read from or printed to.
void wipe(std::string& text);
void wipe(void* bytes, std::size_t size);

/// Used as a std::array is.
template <std::size_t N>
class SecretBytes {
 public:
  using value_type = std::uint8_t;

  SecretBytes() : bytes_(detail::take_secret(N)) {}
  SecretBytes(const std::array<std::uint8_t, N>& bytes) : SecretBytes() {
    std::memcpy(bytes_, bytes.data(), N);
  }
  SecretBytes(const SecretBytes& other) : SecretBytes() { *this = other; }
  SecretBytes& operator=(const SecretBytes& other) {
    if (this != &other) std::memcpy(bytes_, other.bytes_, N);
    return *this;
  }
  ~SecretBytes() { detail::give_secret(bytes_); }

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

}  // namespace starling::wire
