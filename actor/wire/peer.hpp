/// The addresses and keys by which nodes and clients are reached. Plain values; any thread.
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

/// A CURVE key, public or secret.
using Key = std::array<std::uint8_t, 32>;

/// Takes the first bytes of a key, which are practically random.
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof hash);
    return hash;
  }
};

/// How a node is reached.
struct Peer {
  /// `tcp://HOST:PORT`.
  std::string address;
  /// Absent where nothing is encrypted.
  std::optional<Key> key;
  bool operator==(const Peer&) const = default;
};

struct PeerHash {
  std::size_t operator()(const Peer& peer) const noexcept {
    return std::hash<std::string>{}(peer.address) ^ (peer.key ? KeyHash{}(*peer.key) : 0);
  }
};

/// As text: `tcp://HOST:PORT`, HOST in figures, with `?key=` and 64 hexadecimal digits behind it
/// where it has a key.
[[nodiscard]] std::string print(const Peer& peer);
[[nodiscard]] Result<Peer> parse_peer(std::string_view text);
/// The same without the key, for people.
[[nodiscard]] std::string place_of(std::string_view text);

/// Two lower-case hexadecimal digits a byte.
[[nodiscard]] std::string print_hex(const Key& key);
[[nodiscard]] std::optional<Key> parse_hex(std::string_view hex);

}  // namespace starling::wire
