/// Internal to actor/wire: the server's side of CurveZMQ (RFC 26), made with libsodium. It holds
/// the keys of one connection, and does no input or output. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "starling/actor/wire/archive.hpp"
#include "starling/actor/wire/peer.hpp"
#include "starling/actor/wire/secret.hpp"

namespace starling::wire {

class CurveServer {
 public:
  /// The number of bytes of a MESSAGE before its payload: name, nonce, authenticator and flags.
  static constexpr std::size_t overhead = 8 + 8 + 16 + 1;

  /// `secret_key` is the server's. Requires: `secret_key` outlives this object.
  explicit CurveServer(const SecretKey& secret_key);
  ~CurveServer();
  CurveServer(const CurveServer&) = delete;
  CurveServer& operator=(const CurveServer&) = delete;

  /// Returns the body of the WELCOME that answers HELLO; nothing if `hello` is not valid.
  [[nodiscard]] std::optional<Bytes> welcome(std::span<const std::byte> hello);
  /// Returns the client's public key if INITIATE proves that the client holds its secret key;
  /// nothing if not. Requires: welcome() has succeeded.
  [[nodiscard]] std::optional<Key> client_key_of(std::span<const std::byte> initiate);
  /// Returns the body of READY. `metadata` are the server's properties in the format of ZMTP.
  /// Requires: client_key_of() has succeeded.
  [[nodiscard]] Bytes ready(std::span<const std::byte> metadata);

  struct Decrypted {
    /// True if the next MESSAGE holds a further part of the same message.
    bool has_more = false;
    /// True if `payload` is a command of ZMTP.
    bool is_command = false;
    std::span<std::byte> payload;
  };
  /// Decrypts a MESSAGE in place. Returns nothing if it is forged or replayed.
  [[nodiscard]] std::optional<Decrypted> decrypt(std::span<std::byte> message);

 private:
  [[nodiscard]] bool is_vouched(std::span<const std::byte> vouch, const Key& client) const;

  const SecretKey& secret_key_;
  Key client_transient_key_{};
  /// The server's key pair for this connection only.
  Key transient_public_key_{};
  Key transient_secret_key_{};
  /// The secret that follows from the transient keys of both sides.
  Key shared_secret_{};
  std::array<std::uint8_t, 96> cookie_{};
  /// The number in the nonce of the client's last valid command; it must rise with each.
  std::uint64_t last_nonce_ = 0;
};

}  // namespace starling::wire
