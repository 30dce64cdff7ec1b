/// Internal to actor/wire: opens the listening socket, and reads the limit of this process's
/// descriptors.
#pragma once

#include <cstddef>
#include <string>

#include "starling/base/result.hpp"

namespace starling::wire {

/// A listening socket. The caller closes `descriptor`.
struct Listener {
  int descriptor = -1;
  /// tcp://IP:PORT, with a numeric IP address and the actual port.
  std::string address;
};

/// Listens at tcp://HOST:PORT with a non-blocking socket. Host `*` is every interface, port `*` a
/// free port. An Error gives the system's reason.
[[nodiscard]] Result<Listener> open_listener(const std::string& address);

/// Returns the number of descriptors that this process may have, but at most 2^20.
[[nodiscard]] std::size_t descriptors_max();

}  // namespace starling::wire
