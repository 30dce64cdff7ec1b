/// The addresses and public keys under which nodes and clients are reached. Plain values;
/// thread-safe to read.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::wire {

/// A public CURVE key. Also a secret key that lasts no longer than a connection; other secret keys
/// are a SecretKey (secret.hpp), which is locked in memory.
using Key = std::array<std::uint8_t, 32>;

/// Hashes a public key by its first bytes, which are practically random.
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
  }
};

/// The address and the public key under which a node or a client is reached.
struct Peer {
  /// `tcp://HOST:PORT`.
  std::string address;
  /// Absent if nothing is encrypted.
  std::optional<Key> key;
  bool operator==(const Peer&) const = default;
};

struct PeerHash {
  std::size_t operator()(const Peer& peer) const noexcept {
    return std::hash<std::string>{}(peer.address) ^ (peer.key ? KeyHash{}(*peer.key) : 0);
  }
};

/// Prints `tcp://IP:PORT` with a numeric IP address, and after it, if the peer has a key, `?key=`
/// and the key in 64 hexadecimal digits. parse_peer() reads that text.
[[nodiscard]] std::string print(const Peer& peer);
[[nodiscard]] Result<Peer> parse_peer(std::string_view text);
/// Returns the printed peer `text` without its key, as messages to people name it.
[[nodiscard]] std::string without_key(std::string_view text);

/// Prints two lower-case hexadecimal digits for each byte. parse_hex() reads that text, and returns
/// nothing for any other.
[[nodiscard]] std::string print_hex(const Key& key);
[[nodiscard]] std::optional<Key> parse_hex(std::string_view hex);

}  // namespace starling::wire
