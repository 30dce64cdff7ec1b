/// Parses the addresses that users write.
#pragma once

#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

/// Parses `HOST:PORT`, with or without `tcp://` before it, and returns `tcp://HOST:PORT`. An IPv6
/// address is in brackets: `[::1]:7400`. If `is_to_listen`, the host and the port may be `*`. Looks
/// up nothing.
[[nodiscard]] Result<std::string> parse_address(const std::string& text, bool is_to_listen);

/// Returns true if only processes on this machine can reach `address`, tcp://HOST:PORT: the host is
/// `localhost`, `[::1]` or 127.x.x.x.
[[nodiscard]] bool is_loopback(const std::string& address);

}  // namespace starling::program
