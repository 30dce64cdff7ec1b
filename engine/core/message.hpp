/// The messages between the members of a job: plain values. A message is a struct with its fields
/// and its name, and a place in the lists of those that take it, at the end; its handlers in
/// actor/, its encoding, its size and its traffic class follow. Messages that only serve barriers
/// say so (`is_barrier_control`), because the simulator counts them apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/message_list.hpp"
#include "starling/engine/core/slice.hpp"

namespace starling::core {

// --- between workers and owners -----------------------------------------------------------------

/// Worker to owner: asks for a range, or rows of it, as the worker may read it at step `at`.
struct Pull {
  MemberId worker;
  RangeId range;
  Step at;
  Rows rows;

  static constexpr std::string_view name = "pull";
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.range, m.at, m.rows); }
};

/// Owner to worker: the answer to a Pull.
struct Value {
  RangeId range;
  Step at;
  Slice value;

  static constexpr std::string_view name = "value";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.at, m.value); }
};

/// Worker to owner: the update that makes the worker's step `step` (counted from 1), as far as it
/// concerns `range`. An empty slice says that it does not concern the range.
struct Push {
  MemberId worker;
  Incarnation incarnation;
  RangeId range;
  Step step;
  /// Samples the update was computed from.
  std::uint32_t samples;
  /// Samples of all the worker's steps up to and including this one, also of steps that did not
  /// concern the range.
  std::uint64_t samples_sum;
  Slice update;
  /// Bulk-synchronous jobs: there is no update; the worker has joined, and takes part in all rounds
  /// after `step`.
  bool enters = false;
  /// The view of the range that the worker knows; an owner with another view refuses the push.
  Epoch view = 0;

  static constexpr std::string_view name = "push";
  static constexpr auto fields(auto& m) {
    return std::tie(m.worker, m.incarnation, m.range, m.step, m.samples, m.samples_sum, m.update,
                    m.enters, m.view);
  }
};

/// Owner to worker: the owner holds the push for good: applied, or gathered into the round that
/// workers read once they pass the barrier.
struct Ack {
  RangeId range;
  Step step;
  /// Both are as in the push: an Ack to a former incarnation, or by former owners, does not count.
  Incarnation incarnation = 0;
  Epoch view = 0;

  static constexpr std::string_view name = "ack";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.step, m.incarnation, m.view); }
};

/// Worker to owner, and to the coordinator where there is one: `step` was the worker's last.
struct Ended {
  MemberId worker;
  Step step;
  static constexpr std::string_view name = "ended";
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.step); }
};

// --- between workers and the coordinator (steps kept centrally) ---------------------------------

/// Worker to coordinator: all owners hold the worker's update, and its step is now `step`; it asks
/// to go on.
struct Arrived {
  MemberId worker;
  Step step;
  static constexpr std::string_view name = "arrived";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.step); }
};

/// Coordinator to worker: go on from `step`.
struct Proceed {
  Step step;
  static constexpr std::string_view name = "proceed";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.step); }
};

/// Member to the coordinator of a replicated job: what the sender knows of the steps. Sent whenever
/// the coordinator is another one than before, and once by a member that joins.
struct WorkerStatus {
  enum class Phase : std::uint8_t {
    /// It computes no updates.
    idle,
    /// It does not know yet at which step to begin, and asks to begin.
    entering,
    /// It was let go on from `step`.
    going,
    /// All owners hold its update `step`, as in Arrived; it asks to go on.
    waiting,
    /// `step` was its last.
    ended,
  };
  MemberId member = 0;
  Phase phase = Phase::idle;
  Step step = 0;
  /// The highest step of which some worker's update is held in the sender's ranges.
  Step held = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.member, m.phase, m.step, m.held); }
};

constexpr WorkerStatus::Phase last_of(WorkerStatus::Phase) { return WorkerStatus::Phase::ended; }

/// To a worker: stop at the end of the step, at once when waiting. To the coordinator: send Stop to
/// each worker that waits or arrives.
struct Stop {
  static constexpr std::string_view name = "stop";
};

// --- between workers (steps kept by everyone) ---------------------------------------------------

/// Asks the receiver for its step. `draw` numbers the draws of the asking worker; the StepAnswer
/// repeats it.
struct StepQuery {
  MemberId from;
  std::uint64_t draw;
  static constexpr std::string_view name = "query";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw); }
};

struct StepAnswer {
  MemberId from;
  std::uint64_t draw;
  Step step;

  static constexpr std::string_view name = "answer";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw, m.step); }
};

/// Asks the receiver for a Notice as soon as the receiver's step reaches `floor`. A later request
/// of the same sender replaces an earlier one.
struct NotifyRequest {
  MemberId from;
  std::uint64_t draw;
  Step floor;

  static constexpr std::string_view name = "notify-request";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw, m.floor); }
};

/// Answers a NotifyRequest: the sender's step has reached the floor.
struct Notice {
  MemberId from;
  std::uint64_t draw;
  static constexpr std::string_view name = "notice";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw); }
};

// --- between owners and observers ---------------------------------------------------------------

/// To an owner: asks for the state of all its ranges. A later Snapshot replaces one that waits.
struct Snapshot {
  /// Returned with each state.
  std::uint64_t ticket;
  /// Bulk-synchronous jobs: the owner sends each range's state when the range ends this round, or a
  /// state without values where the range is past it. 0 asks for the state as it is.
  Step round = 0;

  static constexpr std::string_view name = "snapshot";
  static constexpr auto fields(auto& m) { return std::tie(m.ticket, m.round); }
};

/// The progress of one worker in one range, as an owner has followed it.
struct LedgerEntry {
  Incarnation incarnation = 0;
  Step step = 0;
  /// Samples of the worker's steps up to `step`.
  std::uint64_t samples = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.incarnation, m.step, m.samples); }
  bool operator==(const LedgerEntry&) const = default;
};

/// Bulk-synchronous jobs: a worker without whose push no round after `from` is complete.
struct Awaited {
  MemberId worker = 0;
  Incarnation incarnation = 0;
  Step from = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.incarnation, m.from); }
  bool operator==(const Awaited&) const = default;
};

/// All that an owner knows of one range: enough for another owner to go on from.
struct RangeState {
  RangeId range = 0;
  Slice value;
  /// Optimiser state, slot after slot, each as long as the range.
  Slice slots;
  /// Updates applied (Adam's t).
  std::uint64_t updates = 0;
  /// Samples seen by all workers, as counted from their pushes; schedules are keyed to them.
  std::uint64_t samples = 0;
  /// Rounds applied; bulk-synchronous jobs only.
  Step round = 0;
  /// By worker: the last step whose update, as far as it concerns this range, is in `value`.
  std::vector<LedgerEntry> ledger;
  /// Bulk-synchronous jobs, from owner to owner: pushes that wait for their round, each worker's in
  /// order.
  std::vector<Push> gathered = {};
  /// The workers that rounds await; absent: all workers of the job, from the first round on.
  std::optional<std::vector<Awaited>> awaited = std::nullopt;
  /// The ticket of the Snapshot that it answers.
  std::uint64_t ticket = 0;

  static constexpr std::string_view name = "state";
  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.value, m.slots, m.updates, m.samples, m.round, m.ledger, m.gathered,
                    m.awaited, m.ticket);
  }
};

// --- who takes what ------------------------------------------------------------------------------
// A role takes the messages of its list. All else follows from these lists: actors' interfaces,
// what travels between nodes, and the messages that the simulator carries.

using WorkerMessages =
    MessageList<Value, Ack, Proceed, Stop, StepQuery, StepAnswer, NotifyRequest, Notice>;
using OwnerMessages = MessageList<Pull, Push, Ended, Snapshot>;
using CoordinatorMessages = MessageList<Arrived, Ended, Stop>;
using ObserverMessages = MessageList<RangeState>;

/// The messages between members.
using MemberMessages = MessageList<Pull, Value, Push, Ack, Ended, Arrived, Proceed, Stop, StepQuery,
                                   StepAnswer, NotifyRequest, Notice>;
using Messages = Joined<MemberMessages, MessageList<Snapshot, RangeState>>;
using Message = AnyOf<Messages>;

}  // namespace starling::core
