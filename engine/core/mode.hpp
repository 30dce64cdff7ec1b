/// The mode of a job: where the model lives, and which members keep the steps.
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
  /// Every worker owns ranges of the model; workers ask each other for their steps.
  peer,
};

[[nodiscard]] Result<Mode> parse_mode(std::string_view text);
[[nodiscard]] std::string print(Mode mode);

[[nodiscard]] constexpr bool keeps_steps_centrally(Mode mode) { return mode == Mode::central; }
[[nodiscard]] constexpr bool has_servers(Mode mode) { return mode != Mode::peer; }

/// The recheck policy where the job names none.
[[nodiscard]] constexpr barrier::Recheck default_recheck(Mode mode) {
  return keeps_steps_centrally(mode) ? barrier::Recheck::central()
                                     : barrier::Recheck::distributed();
}

/// Refuses combinations that cannot work, naming those that do: barriers over everyone where no one
/// sees every step, rechecking at arrivals that no one sees, samples larger than the job.
[[nodiscard]] Result<void> check(Mode mode, const barrier::Barrier& barrier,
                                 const barrier::Recheck& recheck, std::size_t workers);

}  // namespace starling::core
