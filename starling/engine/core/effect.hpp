/// What a core asks of the world. Cores do no I/O: each event returns effects for whoever drives
/// it, be it an actor, a simulator or a test.
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
/// Whoever collects results: display, evaluation, saving.
struct ToObserver {};
using Address = std::variant<ToWorker, ToOwner, ToCoordinator, ToObserver>;

struct Send {
  Address to;
  Message message;
};

/// Call on_timer at this time or soon after. Timers are never cancelled: a call too many or a late
/// one is harmless. One that comes early does not stand for this timer: it must come again.
struct SetTimer {
  Time at;
};

/// Ask the job which ranges the worker needs for the step after `step`, then call on_plan.
struct Plan {
  Step step;
};

/// Compute the update of the step after `step` from `values`, then call on_update or on_failure.
struct Compute {
  Step step;
  /// One for each planned range, in the plan's order.
  std::vector<Value> values;
};

/// The worker's part is over; it still answers.
struct Done {
  Step step;
};

/// The job cannot go on.
struct Fail {
  std::string why;
};

using Effect = std::variant<Send, SetTimer, Plan, Compute, Done, Fail>;
using Effects = std::vector<Effect>;

/// What every event brings: the time, randomness, and where the effects go.
struct Context {
  Time now;
  Random& random;
  Effects& out;

  void send(Address to, Message message) const { out.push_back(Send{to, std::move(message)}); }
};

}  // namespace starling::core
