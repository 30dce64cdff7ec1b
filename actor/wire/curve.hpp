/// Internal to the wire: the server's half of CurveZMQ (RFC 26), over libsodium. It holds the keys
/// of one connection and does no input or output. One thread.
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
  /// Bytes of a message before what is encrypted in it: name, nonce, authenticator and flags.
  static constexpr std::size_t overhead = 8 + 8 + 16 + 1;

  /// Requires: `secret_key`, the server's, outlives this object.
  explicit CurveServer(const SecretKey& secret_key);
  ~CurveServer();
  CurveServer(const CurveServer&) = delete;
  CurveServer& operator=(const CurveServer&) = delete;

  /// The body of WELCOME, which answers HELLO; absent where `hello` is not valid.
  [[nodiscard]] std::optional<Bytes> welcome(std::span<const std::byte> hello);
  /// The client's key, proven by INITIATE. Requires: welcome() has succeeded.
  [[nodiscard]] std::optional<Key> client_of(std::span<const std::byte> initiate);
  /// The body of READY. Requires: client_of() has succeeded.
  [[nodiscard]] Bytes ready(std::span<const std::byte> metadata);

  struct Opened {
    bool has_more = false;
    bool is_command = false;
    std::span<std::byte> payload;
  };
  /// Decrypts a MESSAGE in place; absent where it is forged or replayed.
  [[nodiscard]] std::optional<Opened> open(std::span<std::byte> message);

 private:
  [[nodiscard]] bool is_vouched(std::span<const std::byte> vouch, const Key& client) const;

  const SecretKey& secret_;
  Key client_short_{};
  /// The keys of this connection alone.
  Key short_public_{};
  Key short_secret_{};
  /// The secret that both short keys share.
  Key shared_{};
  std::array<std::uint8_t, 96> cookie_{};
  std::uint64_t last_nonce_ = 0;
};

}  // namespace starling::wire
