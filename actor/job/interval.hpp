/// The intervals in which a worker reads, computes, writes or waits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "starling/engine/core/worker/worker.hpp"

namespace starling::actor {

/// The kinds of intervals of a worker.
enum class Activity : std::uint8_t {
  /// The worker has not begun its first step.
  start,
  /// The worker chooses which ranges it reads.
  plan,
  read,
  /// The worker's step is computed, or waits for a thread that computes it.
  compute,
  /// The worker's update is held back: by an injected delay, or because the worker is a straggler.
  delay,
  write,
  /// The worker waits at the barrier or, if the exchange is the barrier, for its update to count.
  wait,
  /// The worker begins no step until samples or work are dealt anew.
  hold,
  /// The worker's computation waits until a checkpoint of the job is read from the nodes.
  pause
};
constexpr Activity last_of(Activity) { return Activity::pause; }

/// Returns the enumerator's name.
[[nodiscard]] std::string_view name_of(Activity activity);

/// Returns true if the activity is part of making a step: not waiting.
[[nodiscard]] constexpr bool is_of_step(Activity activity) {
  using enum Activity;
  return activity == plan || activity == read || activity == compute || activity == delay ||
         activity == write;
}

struct Interval {
  /// Times since the job started; on nodes, since it started on the worker's node, by that node's
  /// clock.
  core::Time from{};
  core::Time to{};
  /// The step that the worker makes, counted from 1; the step that it has finished if it waits at
  /// the barrier. 0 if the worker has not begun.
  core::Step step = 0;
  /// The laggard for which the worker waits at the barrier, if its draws name one.
  std::optional<core::MemberId> awaited = std::nullopt;
  Activity activity = Activity::start;
};

/// An interval, and the worker whose interval it is.
struct WorkerInterval {
  core::MemberId worker = 0;
  Interval interval;
};

}  // namespace starling::actor
