/// The mode of a job: which members hold the model, and which members keep the workers' steps.
#pragma once

#include <string>
#include <string_view>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/result.hpp"

namespace starling::core {

enum class Mode {
  /// Server shards hold the model; a coordinator keeps the steps of all workers.
  central,
  /// Server shards hold the model; workers ask each other for their steps.
  hybrid,
  /// Workers hold the model, and ask each other for their steps. If the exchange gives ranges to
  /// owners, the owners are all workers of a job in one process, or the first worker of each node
  /// of a job on a cluster.
  peer,
};

[[nodiscard]] Result<Mode> parse_mode(std::string_view text);
[[nodiscard]] std::string print(Mode mode);

[[nodiscard]] constexpr bool keeps_steps_centrally(Mode mode) { return mode == Mode::central; }
[[nodiscard]] constexpr bool has_servers(Mode mode) { return mode != Mode::peer; }

/// Returns the recheck policy of a job whose options do not set one.
[[nodiscard]] constexpr barrier::Recheck default_recheck(Mode mode) {
  return keeps_steps_centrally(mode) ? barrier::Recheck::central()
                                     : barrier::Recheck::distributed();
}

/// Returns an Error if a job with these options cannot run. check() refuses:
///  - a job without workers;
///  - in hybrid and peer mode, a barrier that needs every worker's step
///    (barrier::needs_every_step()), unless `is_exchange_barrier` is true: the job's exchange is
///    then itself the barrier (exchange.hpp);
///  - in hybrid and peer mode, the recheck policy `arrival`;
///  - in central mode, a weighted barrier (barrier::is_weighted());
///  - in all modes, a barrier that barrier::check() refuses, for example one with a sample size of
///    `workers` or more.
/// The Error about a barrier that needs every step ends with "or use " and `alternative`.
[[nodiscard]] Result<void> check(Mode mode, const barrier::Barrier& barrier,
                                 const barrier::Recheck& recheck, std::size_t workers,
                                 bool is_exchange_barrier = false,
                                 std::string_view alternative = "mode central");

}  // namespace starling::core
