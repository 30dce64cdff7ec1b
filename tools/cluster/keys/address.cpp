#include "starling/tools/cluster/keys/address.hpp"

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

constexpr std::string_view scheme = "tcp://";

/// Returns the part of `address` between the scheme and the port.
std::string host_of(const std::string& address) {
  const auto colon = address.rfind(':');
  return address.substr(scheme.size(), colon - scheme.size());
}

}  // namespace

Result<std::string> parse_address(const std::string& text, bool is_to_listen) {
  const Error invalid{"'" + text + "' is no address; valid: HOST:PORT, like 10.0.0.1:7400 or " +
                      "[::1]:7400" + (is_to_listen ? ", *:7400 for every interface" : "")};
  const std::string address = text.starts_with(scheme) ? text : std::string{scheme} + text;
  const auto colon = address.rfind(':');
  if (colon < scheme.size()) return invalid;
  const std::string host = host_of(address);
  const std::string port = address.substr(colon + 1);
  const bool is_v6 = host.starts_with('[') && host.ends_with(']');
  if (host.empty() || (!is_v6 && host.find(':') != std::string::npos)) return invalid;
  if (host.find_first_of(" /;") != std::string::npos || (host == "*" && !is_to_listen))
    return invalid;
  if (port == "*" && is_to_listen) return address;
  const auto number = parse_count(port);
  if (!number || *number < 1 || *number > 65535) return invalid;
  return address;
}

bool is_loopback(const std::string& address) {
  const std::string host = host_of(address);
  const bool is_numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "[::1]" || (is_numeric && host.starts_with("127."));
}

}  // namespace starling::program
