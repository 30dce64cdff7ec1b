/// The messages between the members of a job: plain values. A message is a struct with a name and a
/// list of its fields; the encoding, the size and the traffic class are derived from these. The
/// simulator counts separately the messages that only serve barriers (`is_barrier_control`).
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

/// Worker to owner: asks for a range, or some of its rows, for computing the step after step `at`.
/// In bulk-synchronous jobs the owner answers once it has applied round `at`.
struct Pull {
  MemberId worker;
  RangeId range;
  Step at;
  Rows rows;

  static constexpr std::string_view name = "pull";
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.range, m.at, m.rows); }
};

/// Owner to worker: the answer to a Pull, whose `range` and `at` it copies.
struct Value {
  RangeId range;
  Step at;
  Slice value;

  static constexpr std::string_view name = "value";
  static constexpr auto fields(auto& m) { return std::tie(m.range, m.at, m.value); }
};

/// Worker to owner: the part of the worker's update `step` (counted from 1) that belongs to
/// `range`. An empty slice says that the update does not change the range.
struct Push {
  MemberId worker;
  Incarnation incarnation;
  RangeId range;
  Step step;
  /// The number of samples from which the update was computed.
  std::uint32_t samples;
  /// The number of samples of all the worker's steps up to and including this one, including steps
  /// that did not change the range.
  std::uint64_t samples_total;
  Slice update;
  /// Bulk-synchronous jobs only. True: the push holds no update, but says that the worker has
  /// joined and takes part in all rounds after `step`.
  bool is_join = false;
  /// The epoch since which the range has the owners that the worker knows (Ownership::owner_epoch).
  /// An owner that knows another epoch refuses the push.
  Epoch owner_epoch = 0;

  static constexpr std::string_view name = "push";
  static constexpr auto fields(auto& m) {
    return std::tie(m.worker, m.incarnation, m.range, m.step, m.samples, m.samples_total, m.update,
                    m.is_join, m.owner_epoch);
  }
};

/// Owner to worker: the owner has applied the push, or has gathered it for a bulk-synchronous
/// round. In replicated jobs, all owners of the range have.
struct Ack {
  RangeId range;
  Step step;
  /// Both are copied from the push: the worker ignores an Ack for a former incarnation or from
  /// former owners.
  Incarnation incarnation = 0;
  Epoch owner_epoch = 0;

  static constexpr std::string_view name = "ack";
  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.step, m.incarnation, m.owner_epoch);
  }
};

/// Worker to owner, and to the coordinator if the job has one: `step` was the worker's last.
struct Ended {
  MemberId worker;
  Step step;
  static constexpr std::string_view name = "ended";
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.step); }
};

// --- between workers and the coordinator (steps kept centrally) ---------------------------------

/// Worker to coordinator: all owners hold the worker's update `step`, so the worker's step is now
/// `step`. The worker asks to go on.
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

/// Member to the coordinator of a replicated job: what the sender knows about the steps. A member
/// sends it whenever another member becomes coordinator, and once when it joins.
struct WorkerStatus {
  enum class Phase : std::uint8_t {
    /// The member computes no updates.
    idle,
    /// Its worker does not know yet at which step to begin, and asks to begin.
    entering,
    /// The coordinator let its worker go on from `step`.
    going,
    /// All owners hold update `step` of its worker, as in Arrived; the worker asks to go on.
    waiting,
    /// `step` was its worker's last.
    ended,
  };
  MemberId member = 0;
  Phase phase = Phase::idle;
  Step step = 0;
  /// The highest step of which the sender, as an owner, holds an update of any worker.
  Step held = 0;

  static constexpr std::string_view name = "worker-status";
  static constexpr auto fields(auto& m) { return std::tie(m.member, m.phase, m.step, m.held); }
};

constexpr WorkerStatus::Phase last_of(WorkerStatus::Phase) { return WorkerStatus::Phase::ended; }

/// To a worker: stop at the end of the step, or at once if the worker waits at the barrier. To the
/// coordinator: send Stop to each worker that waits now or arrives later.
struct Stop {
  static constexpr std::string_view name = "stop";
};

// --- between workers (steps kept by everyone) ---------------------------------------------------

/// Asks the receiver for its step. `draw` numbers the draws of the sender.
struct StepQuery {
  MemberId from;
  std::uint64_t draw;
  static constexpr std::string_view name = "query";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw); }
};

/// Answers a StepQuery: the sender's step. `draw` is copied from the query.
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

/// To an owner: asks for the state of all its ranges. A later Snapshot replaces one that still
/// waits for its round.
struct Snapshot {
  /// A number that the owner copies into each RangeState that answers.
  std::uint64_t request_id;
  /// Bulk-synchronous jobs only: the owner sends each range's state when the range completes this
  /// round, or a state without values if the range has completed a later round already. 0 asks for
  /// the present state.
  Step round = 0;

  static constexpr std::string_view name = "snapshot";
  static constexpr auto fields(auto& m) { return std::tie(m.request_id, m.round); }
};

/// The progress of one worker in one range.
struct LedgerEntry {
  Incarnation incarnation = 0;
  /// The last step of which the owner holds the update.
  Step step = 0;
  /// The number of samples of the worker's steps up to `step`.
  std::uint64_t samples = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.incarnation, m.step, m.samples); }
  bool operator==(const LedgerEntry&) const = default;
};

/// A worker whose pushes the rounds of a bulk-synchronous job await: each round after
/// `after_round`.
struct AwaitedWorker {
  MemberId worker = 0;
  Incarnation incarnation = 0;
  Step after_round = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.incarnation, m.after_round); }
  bool operator==(const AwaitedWorker&) const = default;
};

/// All that an owner knows about one range, so that another owner can continue from it.
struct RangeState {
  RangeId range = 0;
  Slice value;
  /// The optimiser's state: its slots one after another, each as long as the range.
  Slice slots;
  /// The number of updates applied (Adam's t).
  std::uint64_t updates = 0;
  /// The number of samples that all workers have pushed; learning-rate schedules depend on it.
  std::uint64_t samples = 0;
  /// Bulk-synchronous jobs only: the number of rounds applied.
  Step round = 0;
  /// Indexed by worker: the last update that `value` contains.
  std::vector<LedgerEntry> ledger;
  /// Bulk-synchronous jobs only, from owner to owner: the pushes that wait for their round, each
  /// worker's in order of steps.
  std::vector<Push> gathered = {};
  /// Bulk-synchronous jobs only: the workers that rounds await. Absent: rounds await all workers of
  /// the job, from the first round on.
  std::optional<std::vector<AwaitedWorker>> awaited = std::nullopt;
  /// Copied from the Snapshot that this state answers.
  std::uint64_t request_id = 0;

  static constexpr std::string_view name = "state";
  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.value, m.slots, m.updates, m.samples, m.round, m.ledger, m.gathered,
                    m.awaited, m.request_id);
  }
};

// --- the lists ----------------------------------------------------------------------------------
// The codec, the sizes and the simulator's network are generated from these lists.

/// The messages between workers, owners and the coordinator.
using MemberMessages = MessageList<Pull, Value, Push, Ack, Ended, Arrived, Proceed, Stop, StepQuery,
                                   StepAnswer, NotifyRequest, Notice>;
using Messages = Joined<MemberMessages, MessageList<Snapshot, RangeState>>;
using Message = AnyOf<Messages>;

}  // namespace starling::core
