/// Internal to the wire: the socket that others connect to, and how many connections fit.
#pragma once

#include <cstddef>
#include <string>

#include "starling/base/result.hpp"

namespace starling::wire {

struct Listening {
  int descriptor = -1;
  /// tcp://HOST:PORT with the host in figures and the port that it has.
  std::string address;
};

/// Listens at tcp://HOST:PORT, without waiting on accept. Host `*` is every interface, port `*` a
/// free one. An Error gives the system's reason.
[[nodiscard]] Result<Listening> listen_at(const std::string& address);

/// How many descriptors this process may have.
[[nodiscard]] std::size_t descriptors_max();

}  // namespace starling::wire
