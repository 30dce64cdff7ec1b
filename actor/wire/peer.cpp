#include "starling/actor/wire/peer.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "starling/base/text.hpp"

namespace starling::wire {
namespace {

constexpr std::string_view key_separator = "?key=";
constexpr std::string_view hex_digits = "0123456789abcdef";

/// Returns true if `text` is tcp://IP:PORT with a numeric IP address. Refuses host names, because
/// looking them up may take long, and other schemes, because they connect only within a machine.
bool is_numeric_address(std::string_view text) {
  constexpr std::string_view scheme = "tcp://";
  const auto colon = text.rfind(':');
  if (!text.starts_with(scheme) || text.size() > 64 || colon < scheme.size()) return false;
  std::string_view host = text.substr(scheme.size(), colon - scheme.size());
  const bool is_v6 = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (is_v6) host = host.substr(1, host.size() - 2);
  std::array<unsigned char, sizeof(in6_addr)> address{};
  if (::inet_pton(is_v6 ? AF_INET6 : AF_INET, std::string{host}.c_str(), address.data()) != 1)
    return false;
  // Accepts an address only in the system's spelling, because it is compared as text with the
  // addresses of connected peers.
  std::array<char, INET6_ADDRSTRLEN> printed{};
  ::inet_ntop(is_v6 ? AF_INET6 : AF_INET, address.data(), printed.data(), printed.size());
  if (host != printed.data() || host.starts_with("::ffff:")) return false;
  if (std::ranges::all_of(address, [](unsigned char byte) { return byte == 0; })) return false;
  const auto port = parse_count(text.substr(colon + 1));
  return port && text[colon + 1] != '0' && *port >= 1 && *port <= 65535;
}

}  // namespace

std::string print(const Peer& peer) {
  return peer.key ? peer.address + std::string{key_separator} + print_hex(*peer.key) : peer.address;
}

Result<Peer> parse_peer(std::string_view text) {
  const auto separator = text.find(key_separator);
  if (!is_numeric_address(text.substr(0, separator)))
    return Error{
        "'" + std::string{text.substr(0, separator)} +
        "' is not an address; valid: tcp://IP:PORT with a numeric IP address, as the system prints "
        "it"};
  Peer peer{std::string{text.substr(0, separator)}, std::nullopt};
  if (separator == std::string_view::npos) return peer;
  peer.key = parse_hex(text.substr(separator + key_separator.size()));
  if (!peer.key)
    return Error{"'" + std::string{text} + "' has no key after " + std::string{key_separator} +
                 "; valid: 64 hexadecimal digits"};
  return peer;
}

std::string without_key(std::string_view text) {
  return std::string{text.substr(0, text.find(key_separator))};
}

std::string print_hex(const Key& key) {
  std::string text;
  for (const std::uint8_t byte : key) {
    text += hex_digits[byte >> 4U];
    text += hex_digits[byte & 15U];
  }
  return text;
}

std::optional<Key> parse_hex(std::string_view hex) {
  Key key{};
  if (hex.size() != 2 * key.size() || hex.find_first_not_of(hex_digits) != std::string_view::npos)
    return std::nullopt;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i < key.size(); ++i)
    key[i] = static_cast<std::uint8_t>(16 * digit(hex[2 * i]) + digit(hex[2 * i + 1]));
  return key;
}

}  // namespace starling::wire
