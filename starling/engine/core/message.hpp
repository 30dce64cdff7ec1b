/// Everything the members of a job say to one another. Plain values; actor/ gives each a typed
/// handler, and later the wire an encoding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/slice.hpp"

namespace starling::core {

// --- between workers and owners -----------------------------------------------------------------

/// Worker to owner: send me a range (or rows of it) as I may read it at step `at`.
struct Pull {
  MemberId worker;
  RangeId range;
  Step at;
  Rows rows;
};

/// Owner to worker: the answer to a Pull.
struct Value {
  RangeId range;
  Step at;
  Slice value;
};

/// Worker to owner: my update that makes my step `step` (counted from 1), as far as it concerns
/// `range`. An empty slice says that it does not.
struct Push {
  MemberId worker;
  Incarnation incarnation;
  RangeId range;
  Step step;
  /// Samples the update was computed from.
  std::uint32_t samples;
  /// Samples of all the worker's steps up to and with this one, also of those that did not concern
  /// the range.
  std::uint64_t samples_sum;
  Slice update;
  /// Bulk-synchronous jobs: there is no update; the worker has joined, and takes part in all rounds
  /// after `step`.
  bool enters = false;
  /// The epoch since which the range has the owners that the worker knows; others refuse it.
  Epoch view = 0;
};

/// Owner to worker: the push is held, by me for good: applied, or gathered into the round that
/// whoever passes the barrier will read.
struct Ack {
  RangeId range;
  Step step;
  /// As the push had them: nothing counts that was said to a former incarnation or by former
  /// owners.
  Incarnation incarnation = 0;
  Epoch view = 0;
};

/// Worker to owner, and to the coordinator where there is one: `step` was my last.
struct Ended {
  MemberId worker;
  Step step;
};

// --- between workers and the coordinator (steps kept centrally) ---------------------------------

/// Worker to coordinator: all owners hold my update; my step is now `step`. May I go on?
struct Arrived {
  MemberId worker;
  Step step;
};

/// Coordinator to worker: go on from `step`.
struct Proceed {
  Step step;
};

/// Member to the coordinator of a replicated job, whenever that is another one than before, and
/// once by whoever joins: what I know of the steps.
struct WorkerStatus {
  enum class Phase : std::uint8_t {
    /// It computes no updates.
    idle,
    /// It does not know yet at which step to begin. May it?
    entering,
    /// It was let go from `step`.
    going,
    /// All owners hold its update `step`, as in Arrived. May it go on?
    waiting,
    /// `step` was its last.
    ended,
  };
  MemberId member = 0;
  Phase phase = Phase::idle;
  Step step = 0;
  /// The highest step of which some worker's update is held in the sender's ranges.
  Step held = 0;
};

/// To a worker: stop at the end of the step, at once when waiting. To the coordinator: tell each
/// worker so when it arrives.
struct Stop {};

// --- between workers (steps kept by everyone) ---------------------------------------------------

/// What is your step?
struct StepQuery {
  MemberId from;
  std::uint64_t draw;
};

struct StepAnswer {
  MemberId from;
  std::uint64_t draw;
  Step step;
};

/// Tell me when your step reaches `floor`. A later one of the same requester replaces it.
struct NotifyAt {
  MemberId from;
  std::uint64_t draw;
  Step floor;
};

struct CaughtUp {
  MemberId from;
  std::uint64_t draw;
};

// --- from owners to whoever keeps the model -----------------------------------------------------

/// To an owner: send me the state of all your ranges. A later one replaces one that waits.
struct Snapshot {
  /// Comes back with each state.
  std::uint64_t ticket;
  /// Bulk-synchronous jobs: each range answers when it ends this round, or without values where it
  /// is past it. 0 asks for the state as it is.
  Step round = 0;
};

/// How far an owner has followed one worker in one range.
struct LedgerEntry {
  Incarnation incarnation = 0;
  Step step = 0;
  /// Samples of the worker's steps up to `step`.
  std::uint64_t samples = 0;
  bool operator==(const LedgerEntry&) const = default;
};

/// Bulk-synchronous jobs: a worker without whose push no round after `from` is complete.
struct Awaited {
  MemberId worker = 0;
  Incarnation incarnation = 0;
  Step from = 0;
  bool operator==(const Awaited&) const = default;
};

/// All an owner knows of one range: enough to go on from.
struct RangeState {
  RangeId range = 0;
  Slice value;
  /// Optimiser state, slot after slot, each as long as the range.
  Slice slots;
  /// Updates applied (Adam's t).
  std::uint64_t updates = 0;
  /// Samples seen by all workers, as far as their pushes have told: the schedules' key.
  std::uint64_t samples = 0;
  /// Rounds applied; bulk-synchronous jobs only.
  Step round = 0;
  /// By worker: the last step whose update, as far as it concerns this range, is in `value`.
  std::vector<LedgerEntry> ledger;
  /// Bulk-synchronous jobs, from owner to owner: what waits for its round, each worker's in order.
  std::vector<Push> gathered = {};
  /// Absent: all workers of the job, from the first round on.
  std::optional<std::vector<Awaited>> awaited = std::nullopt;
  /// The Snapshot it answers.
  std::uint64_t ticket = 0;
};

using Message = std::variant<Pull, Value, Push, Ack, Ended, Arrived, Proceed, Stop, StepQuery,
                             StepAnswer, NotifyAt, CaughtUp, Snapshot, RangeState>;

}  // namespace starling::core
