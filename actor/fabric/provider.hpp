/// The providers of libfabric that carry one-sided writes between processes. Pure functions;
/// thread-safe to call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "starling/base/result.hpp"

namespace starling::fabric {

enum class Provider : std::uint8_t {
  /// Processes on one host: the kernel copies from one process's memory to the other's.
  shm,
  /// Processes on any hosts: TCP connections, which the receiver's CPU serves.
  tcp,
  /// Processes on any hosts with RDMA devices.
  verbs,
};

/// Parses `shm`, `tcp` or `verbs`.
[[nodiscard]] Result<Provider> parse_provider(std::string_view text);
[[nodiscard]] std::string_view print(Provider provider);

/// Returns an Error that says why this machine cannot use the provider, if it cannot.
[[nodiscard]] Result<void> check(Provider provider);

}  // namespace starling::fabric
