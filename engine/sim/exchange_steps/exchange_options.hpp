/// The options and the figures of exchanges in the simulation of steps
/// (docs/design/0030-exchanges-by-steps.md). Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "starling/base/distributions/distribution.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/mode.hpp"

namespace starling::sim {

using core::Time;

/// How workers' updates become one, and the network between them. Each member has a port, which
/// sends one message at a time, and receives one at the same time; both take the bytes of the
/// message divided by the bandwidth. A message begins to arrive one latency after it has begun to
/// leave. Messages without tensors take the latency alone.
struct ExchangeStepOptions {
  /// The name of an exchange (core/training/exchanges.hpp), and perhaps its argument.
  std::string name = "owners";
  /// The bytes of the model, and so of an update.
  double bytes = 1e8;
  Distribution latency = {};
  /// The bandwidth of a port, in each direction. 0 means no limit.
  double bytes_per_second = 0;
  /// The number of owners, if servers have the model; in peer mode each worker is an owner.
  std::size_t servers = 1;
};

/// The figures of an exchange in one simulation.
struct ExchangeFigures {
  /// The share of the running workers' time in which they waited for the exchange: for reads and
  /// writes, including the time in which these wait for other workers.
  double share = 0;
  /// The bytes and the number of all messages with tensors that were sent.
  double bytes = 0;
  std::uint64_t messages = 0;
  /// The longest time from when a message began to leave its sender until it had arrived; absent
  /// for exchanges that sum.
  std::optional<Time> longest_message = std::nullopt;
  /// Exchanges that sum: the longest time from when all workers took part in a sum until all had
  /// it. With buckets, each bucket has a sum.
  std::optional<Time> longest_sum = std::nullopt;
  /// Gossip: the push-sum weight of all workers and messages, which is the number of workers; and
  /// how far workers' values differ from the exact average, if each had begun with a random number:
  /// the root of the mean square, divided by what it was at first.
  std::optional<double> weight = std::nullopt;
  std::optional<double> mixing_error = std::nullopt;

  bool operator==(const ExchangeFigures&) const = default;
};

/// True if the exchange sums among all workers, and so is itself the barrier. Requires: the name is
/// known.
[[nodiscard]] bool is_sum(const ExchangeStepOptions& options);

/// Returns an error if the exchange cannot be simulated: if its name or the size is invalid, the
/// mode cannot have it, the number of workers is too large for it, or a sum would need latencies
/// that vary.
[[nodiscard]] Result<void> check(const ExchangeStepOptions& options, core::Mode mode,
                                 std::size_t workers);

/// Returns an estimate of the bytes of memory that the exchange takes for each worker.
[[nodiscard]] std::uint64_t bytes_per_worker(const ExchangeStepOptions& options, core::Mode mode,
                                             std::size_t workers);

}  // namespace starling::sim
