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

/// How workers combine their updates, and the network between them. Each member has a port, which
/// sends one message at a time, and receives one at the same time; both take the bytes of the
/// message divided by the bandwidth. A message begins to arrive one latency after it has begun to
/// leave. Messages without tensors take the latency alone.
struct ExchangeStepOptions {
  /// The name of an exchange (core/training/exchanges.hpp); `:` and its argument may follow.
  std::string name = "owners";
  /// The bytes of the model, and so of an update.
  double bytes = 1e8;
  Distribution latency = {};
  /// The bandwidth of a port, in each direction. 0 means no limit.
  double bytes_per_second = 0;
  /// The number of owners if the mode has servers. In peer mode each worker is an owner.
  std::size_t servers = 1;
};

/// The figures of an exchange in one simulation.
struct ExchangeFigures {
  /// The share of the running workers' time in which they waited for the exchange: for reads and
  /// writes, including the time in which these wait for other workers.
  double waiting_share = 0;
  /// The bytes and the number of all messages with tensors that were sent.
  double bytes = 0;
  std::uint64_t messages = 0;
  /// The longest time from when a message began to leave its sender until it had arrived; absent
  /// for exchanges that sum.
  std::optional<Time> longest_message = std::nullopt;
  /// Exchanges that sum: the longest time from when all workers took part in a sum until all had
  /// it. With buckets, each bucket has a sum.
  std::optional<Time> longest_sum = std::nullopt;
  /// Gossip: the sum of the push-sum weights of all workers and messages, which is the number of
  /// workers; and the mixing error. For this error, each worker begins with a random number. The
  /// error is the root mean square of the differences between the workers' numbers and their exact
  /// average, divided by its value at the start.
  std::optional<double> weight = std::nullopt;
  std::optional<double> mixing_error = std::nullopt;

  bool operator==(const ExchangeFigures&) const = default;
};

/// True if the exchange sums among all workers, and so is itself the barrier. Requires: the name is
/// known.
[[nodiscard]] bool is_sum(const ExchangeStepOptions& options);

/// Returns an error if the exchange cannot be simulated: if an option is invalid, the mode cannot
/// have the exchange, the simulation of steps lacks it, the number of workers is too large for it,
/// or it sums among several workers and the latency varies.
[[nodiscard]] Result<void> check(const ExchangeStepOptions& options, core::Mode mode,
                                 std::size_t workers);

/// Returns an estimate of the bytes of memory that the exchange takes for each worker.
[[nodiscard]] std::uint64_t bytes_per_worker(const ExchangeStepOptions& options, core::Mode mode,
                                             std::size_t workers);

}  // namespace starling::sim
