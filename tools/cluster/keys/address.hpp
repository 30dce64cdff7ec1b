/// Addresses as people write them.
#pragma once

#include <string>

#include "starling/base/result.hpp"

namespace starling::program {

/// `HOST:PORT`, with `tcp://` before it or not, as `tcp://HOST:PORT`; `[::1]:7400` for IPv6. With
/// `may_be_any` the port may be `*`, and the host too.
[[nodiscard]] Result<std::string> parse_address(const std::string& text, bool may_be_any);

/// True where nobody on another machine can reach it.
[[nodiscard]] bool is_loopback(const std::string& address);

}  // namespace starling::program
