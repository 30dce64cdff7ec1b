/// The effects that a core asks for. A core is the state and protocol of one part of a member,
/// without I/O, clock or threads. Its driver (an actor, a simulator or a test) calls it at each
/// event, and then executes the effects that the core has appended to Context::out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/core/update.hpp"

namespace starling::models {
class SampleOrder;
}  // namespace starling::models

namespace starling::core {

struct ToMember {
  MemberId id;
};
struct ToCoordinator {};
using Address = std::variant<ToMember, ToCoordinator>;

struct Send {
  Address to;
  Message message;
};

/// Call on_timer at this time or soon after. Timers are never cancelled. An additional or a late
/// call is harmless; a call before `at` does not replace the call at `at`.
struct SetTimer {
  Time at;
};

/// The part of the job's work that a worker does in a step: part `index` of `count`. The workers
/// share the work anew when some of them join, leave or die; a step keeps the part with which it
/// began.
struct WorkShare {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
  /// How the samples are dealt since the workers changed, and the worker's step when its part of
  /// the deal began; null as long as the job has its first workers, unless batches are
  /// dynamic.
  std::shared_ptr<const models::SampleOrder> order = nullptr;
  Step first_step = 0;
  /// If workers hand in early: the number of samples of its part that the worker has taken before
  /// this step. `first_step` means nothing then.
  std::optional<std::uint64_t> taken = std::nullopt;
};

/// Ask the job's model which ranges the worker needs for the step after `step`, then call on_plan.
struct Plan {
  Step step;
  WorkShare share = {};
};

/// The values that a worker read in a step, and the update that it computed from them.
struct FormerStep {
  std::vector<Value> values;
  std::vector<Update::Part> update;
};

/// Compute the update of the step after `step` from `values`, then call on_update or on_failure.
/// Parts of the update that are final earlier may go to on_parts.
struct Compute {
  Step step;
  /// One value for each range that was read, in the order of the plan.
  std::vector<Value> values;
  WorkShare share = {};
  /// If workers hand in early: the most samples to compute, the first ones of the share; the size
  /// of a micro-batch (micro_batch_of()) if the worker must hand in already.
  std::uint64_t samples_max = UINT64_MAX;
  /// Present if the barrier moves with the descent of the loss, from the worker's second step on:
  /// the update is to say the descent from this step (descent_from(), engine/work/descent.hpp).
  std::shared_ptr<const FormerStep> former = nullptr;
};

/// Returns how many samples of a batch are computed at a time if workers hand in early: an eighth,
/// rounded up. A worker that is told to hand in finishes the part that it is computing, so the
/// others wait for a sixteenth of its batch on average. In smaller parts, models that multiply
/// matrices become slower.
[[nodiscard]] constexpr std::uint64_t micro_batch_of(std::uint64_t batch) {
  return batch / 8 + (batch % 8 > 0 ? 1 : 0);
}

/// Returns how many samples of a batch a worker has begun, at least 1, when `passed` of `length`,
/// the time that the batch takes, has passed. Where a duration stands for the computation (an
/// injected delay, a simulated step), a worker that is told to hand in finishes the sample that it
/// has begun. Requires: batch >= 1 and length > 0.
[[nodiscard]] inline std::uint64_t samples_begun(std::uint64_t batch, Time passed, Time length) {
  const auto samples = static_cast<double>(batch);
  const double begun = std::ceil(samples * static_cast<double>(passed.count()) /
                                 static_cast<double>(length.count()));
  return static_cast<std::uint64_t>(std::clamp(begun, 1.0, samples));
}

/// If workers hand in early: stop computing the step after `step` as soon as some samples are done,
/// and call on_update with the update over these. Ignore this effect if that step is not being
/// computed.
struct HandInNow {
  Step step;
};

/// Read the ranges of `plan`, for the step after `step`, then call on_values. nullopt: all ranges.
struct Read {
  Step step = 0;
  /// Each range at most once.
  std::optional<std::vector<RangeRows>> plan;
  /// The values must contain the updates of all workers up to this step, as far as the barrier
  /// promises it.
  Step oldest = 0;
  /// The step that all workers have reached, as far as the worker knows: at least `oldest`. Values
  /// that are read now contain the updates of all workers up to this step.
  Step floor = 0;
};

/// Write the update of step `step`, then call on_written.
struct Write {
  /// Counted from 1.
  Step step = 1;
  Update update;
  /// The number of samples of all the worker's steps up to and including this one.
  std::uint64_t samples_total = 0;
};

/// Hand over parts of the update of step `step`. The Write of this step contains these parts, too.
/// Parts may come several times, each time with more ranges or, if computing has failed meanwhile,
/// with fewer.
struct WriteParts {
  Step step = 1;
  EarlyParts parts;
};

/// Bulk-synchronous jobs only: announce that the worker has joined and writes the update of each
/// step after `step`, then call on_written with `step`. If the exchange is the barrier, `step` is
/// 0, and on_written is called with the step after which the worker writes.
struct Enter {
  Step step = 0;
};

/// The worker writes no update after that of step `step`.
struct EndWrites {
  Step step = 0;
};

/// The worker has made its last step; it still answers messages.
struct Done {
  Step step;
};

/// End the job: it cannot continue, for the reason `why`.
struct Fail {
  std::string why;
};

using Effect = std::variant<Send, SetTimer, Plan, Read, Compute, HandInNow, WriteParts, Write,
                            Enter, EndWrites, Done, Fail>;
using Effects = std::vector<Effect>;

/// The argument `context` of every function of a core that handles an event: the time, a random
/// generator, and the list to which the core appends its effects.
struct Context {
  Time now;
  Random& random;
  Effects& out;

  void send(Address to, Message message) const { out.push_back(Send{to, message}); }
};

}  // namespace starling::core
