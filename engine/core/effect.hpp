/// The effects that a core asks for. A core is the state and protocol of one role, without I/O,
/// clock or threads. Its driver (an actor, a simulator or a test) calls it at each event, and then
/// executes the effects that the core has appended to Context::out.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/message.hpp"

namespace starling::core {

struct ToWorker {
  MemberId id;
};
struct ToOwner {
  OwnerId id;
};
struct ToCoordinator {};
/// The observer, which collects results for display, evaluation and saving.
struct ToObserver {};
using Address = std::variant<ToWorker, ToOwner, ToCoordinator, ToObserver>;

struct Send {
  Address to;
  Message message;
};

/// Call on_timer at this time or soon after. Timers are never cancelled. An additional or a late
/// call is harmless; a call before `at` does not replace the call at `at`.
struct SetTimer {
  Time at;
};

/// Ask the job's model which ranges the worker needs for the step after `step`, then call on_plan.
struct Plan {
  Step step;
};

/// Compute the update of the step after `step` from `values`, then call on_update or on_failure.
struct Compute {
  Step step;
  /// One value for each range that on_plan named, in the same order.
  std::vector<Value> values;
};

/// The worker has made its last step; it still answers messages.
struct Done {
  Step step;
};

/// End the job: it cannot continue, for the reason `why`.
struct Fail {
  std::string why;
};

using Effect = std::variant<Send, SetTimer, Plan, Compute, Done, Fail>;
using Effects = std::vector<Effect>;

/// Passed to every event: the time, a random generator, and the list to which the core appends its
/// effects.
struct Context {
  Time now;
  Random& random;
  Effects& out;

  void send(Address to, Message message) const { out.push_back(Send{to, std::move(message)}); }
};

}  // namespace starling::core
