/// How many rings fit into a topology, to compare rings with packed trees (packing.hpp). Pure
/// functions; thread-safe.
#pragma once

#include <cstddef>

#include "starling/engine/exchange/collective/topology.hpp"

namespace starling::collective {

/// Returns the largest number of directed rings through all members, drawn with repetition, that
/// fit into the lanes at once: the bandwidth of an all-reduce over rings, in lanes. Tries all
/// directed Hamiltonian cycles. Requires: 2 <= members <= 8.
[[nodiscard]] std::size_t most_rings(const Topology& topology);

}  // namespace starling::collective
