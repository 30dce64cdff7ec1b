/// The cost of a schedule: rounds, bytes per port, and time by latency and bandwidth. Pure
/// functions; thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/topology.hpp"

namespace starling::collective {

/// Hockney's model (1994): a message of b bytes takes `latency_s + b / bytes_per_second`. A port
/// sends one message at a time, and receives one at the same time. A round ends when its last
/// message has arrived.
struct Network {
  double latency_s = 0;
  /// The bandwidth of a port, in each direction; with a topology, of each lane of its links.
  double bytes_per_second = 1;
  /// If set, each link sends one message at a time over all its lanes, and ports do not limit it.
  std::shared_ptr<const Topology> topology = nullptr;
};

struct Cost {
  std::size_t rounds = 0;
  /// The messages of all members; all that one member sends another in a round is one message.
  std::size_t messages = 0;
  /// The bytes that the busiest port sends or receives, whichever is more; with a topology, the
  /// bytes over the busiest link.
  double port_bytes = 0;
  /// The time of the whole collective if each chunk is cut into `slices` slices (pipelined()).
  /// `slices` is the power of two up to slices_max with which the collective takes the least time.
  double seconds = 0;
  std::size_t slices = 1;
  /// The time with one slice.
  double unpipelined_seconds = 0;
};

inline constexpr std::size_t slices_max = 4096;

/// Computes the cost for a vector of `bytes`. Refuses schedules with moves between members that the
/// topology does not connect. Requires: the schedule passes check(), 0 < bytes_per_second,
/// 0 <= latency_s.
[[nodiscard]] Result<Cost> cost(const Schedule& schedule, double bytes, const Network& network);

}  // namespace starling::collective
