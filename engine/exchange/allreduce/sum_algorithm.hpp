/// The algorithm by which workers sum if none is named. Pure functions; thread-safe.
#pragma once

#include "starling/engine/exchange/collective/algorithms/choice.hpp"

namespace starling::core {

/// Returns the network for which the algorithm is chosen: 10 Gbit/s, as `starling collective`
/// assumes.
[[nodiscard]] collective::Network assumed_sum_network();

/// Returns the plan for vectors of `bytes` that takes the least time over that network, if each
/// message also takes its sender and its receiver some time to handle. Among more than 64 workers,
/// only trees, doubling and halving are compared, because each worker makes the schedule for
/// itself, and those of the other algorithms have too many messages. With `rounds_to_bf16`
/// (ExchangeOptions), the plan is not doubling (AllreduceExchange::check_rounding()). Requires:
/// 1 <= workers <= allreduce_workers_max.
[[nodiscard]] collective::Plan fastest_sum(std::size_t workers, double bytes,
                                           bool rounds_to_bf16 = false);

}  // namespace starling::core
