/// Internal to the simulation of steps: the state of each worker besides its step. Plain values.
#pragma once

#include <optional>

#include "starling/barrier/recheck.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/step_times.hpp"

namespace starling::sim {

inline constexpr core::Time never = core::Time::max();

/// The outcome of a draw.
struct DrawResult {
  bool pass;
  /// If the draw failed and laggards send notices: one drawn laggard.
  std::optional<core::MemberId> laggard = std::nullopt;
  /// When the draw is decided, if that is later than now: a drawn worker is away.
  std::optional<core::Time> decided_at = std::nullopt;
};

/// The state of one worker, waiting or not, that recheck policies with timers and notices need.
struct Waiter {
  bool waiting = false;
  /// When the worker finishes its step or, while it waits, draws again; `never` if it does neither.
  /// Events at other times are stale.
  core::Time due_at = never;
  /// True if the worker does not draw at `due_at`, but asks its laggard again for a notice.
  bool asks_again = false;
  /// The number of the worker's last draw. Notices for earlier draws are stale.
  std::uint64_t draw = 0;
  /// The outcome of the last draw, if it is known but not decided yet: the worker learns it at
  /// `due_at`.
  std::optional<DrawResult> pending_result = std::nullopt;
  core::Time step_began_at{};
  core::StepTimes step_times = {};

  void stop_timer() {
    due_at = never;
    asks_again = false;
  }

  /// Records that the worker begins a step. A timer of its wait is stale from now on, also while it
  /// reads.
  void begin_step(core::Time now) {
    step_began_at = now;
    stop_timer();
  }
};

/// Returns how long after its last draw the worker draws again.
[[nodiscard]] inline core::Time interval_of(const Waiter& waiter, const barrier::Recheck& recheck) {
  const bool is_fixed = recheck.interval && *recheck.interval != barrier::Recheck::automatic;
  return is_fixed ? *recheck.interval : waiter.step_times.recheck_interval();
}

}  // namespace starling::sim
