/// The mode of a job: which members hold the model, and which members keep the workers' steps.
#pragma once

#include <string>
#include <string_view>

#include "starling/barrier/barrier.hpp"
#include "starling/barrier/recheck.hpp"
#include "starling/base/result.hpp"

namespace starling::core {

enum class Mode {
  /// Server shards hold the model; their coordinator sees every step.
  central,
  /// Server shards hold the model; workers ask each other for their steps.
  hybrid,
  /// Workers own ranges of the model: all of them in one process, the first one of each node
  /// between machines. Workers ask each other for their steps.
  peer,
};

[[nodiscard]] Result<Mode> parse_mode(std::string_view text);
[[nodiscard]] std::string print(Mode mode);

[[nodiscard]] constexpr bool keeps_steps_centrally(Mode mode) { return mode == Mode::central; }
[[nodiscard]] constexpr bool has_servers(Mode mode) { return mode != Mode::peer; }

/// Returns the recheck policy of a job that sets none.
[[nodiscard]] constexpr barrier::Recheck default_recheck(Mode mode) {
  return keeps_steps_centrally(mode) ? barrier::Recheck::central()
                                     : barrier::Recheck::distributed();
}

/// Returns an error, which names valid values, if the job cannot work: if it has no workers, if its
/// barrier draws larger samples than it has workers, or if no member sees every worker's step in
/// `mode`, and the barrier needs every step or the recheck policy is `arrival`; or if a coordinator
/// does, and the barrier is weighted. `is_exchange_barrier`: the job's exchange is itself the
/// barrier (exchange.hpp), so no member needs to see every step. `alternative` is the last advice
/// for a barrier that needs every step.
[[nodiscard]] Result<void> check(Mode mode, const barrier::Barrier& barrier,
                                 const barrier::Recheck& recheck, std::size_t workers,
                                 bool is_exchange_barrier = false,
                                 std::string_view alternative = "mode central");

}  // namespace starling::core
