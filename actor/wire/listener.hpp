/// Internal to actor/wire: the listening socket, and the number of descriptors that a process may
/// have.
#pragma once

#include <cstddef>
#include <string>

#include "starling/base/result.hpp"

namespace starling::wire {

/// A listening socket.
struct Listener {
  int descriptor = -1;
  /// tcp://IP:PORT, with a numeric IP address and the actual port.
  std::string address;
};

/// Listens at tcp://HOST:PORT with a non-blocking socket. Host `*` is every interface, port `*` a
/// free port. An Error gives the system's reason.
[[nodiscard]] Result<Listener> open_listener(const std::string& address);

/// The number of descriptors that this process may have; at most 2^20 is reported.
[[nodiscard]] std::size_t descriptors_max();

}  // namespace starling::wire
