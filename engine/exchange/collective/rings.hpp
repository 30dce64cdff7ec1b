/// Rings in a topology, with which trees compare (packing.hpp). Pure functions; thread-safe.
#pragma once

#include <cstddef>

#include "starling/engine/exchange/collective/topology.hpp"

namespace starling::collective {

/// Returns how many directed rings through all members have lanes of their own, at most: so fast,
/// in lanes, are rings together. Tries all of them. Requires: 2 <= members <= 8.
[[nodiscard]] std::size_t most_rings(const Topology& topology);

}  // namespace starling::collective
