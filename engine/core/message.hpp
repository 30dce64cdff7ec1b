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

#include "starling/barrier/descent.hpp"
#include "starling/engine/core/ids.hpp"
#include "starling/engine/core/slice.hpp"
#include "starling/engine/core/type_list.hpp"

namespace starling::core {

// --- parameters ---------------------------------------------------------------------------------

/// The values of a range, or of some of its rows, as a worker reads them for the step after
/// `after_step`.
struct Value {
  RangeId range;
  Step after_step;
  Slice value;
  /// If an owner answers: the number of samples of all updates that the values contain.
  std::uint64_t samples = 0;

  static constexpr std::string_view name = "value";
  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.after_step, m.value, m.samples);
  }
};

/// From an observer to a member: asks for the states of the ranges that the member answers for. A
/// later Snapshot replaces one that still waits for its round.
struct Snapshot {
  /// A number that the member copies into each RangeState that answers.
  std::uint64_t request_id;
  /// Bulk-synchronous jobs only: the member sends each range's state when the range completes this
  /// round, or a state without values if the range has completed a later round already. 0 asks for
  /// the current state.
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

/// The state of one range: its values, and which updates they contain. A job can continue from the
/// states of all ranges.
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
  /// Copied from the Snapshot that this state answers.
  std::uint64_t request_id = 0;

  static constexpr std::string_view name = "state";
  static constexpr auto fields(auto& m) {
    return std::tie(m.range, m.value, m.slots, m.updates, m.samples, m.round, m.ledger,
                    m.request_id);
  }
};

/// Returns the ledger entry from which a worker continues: the one for the last step of which every
/// range in `initial_states` holds the update.
[[nodiscard]] inline LedgerEntry first_ledger_entry(const std::vector<RangeState>& initial_states,
                                                    MemberId worker) {
  std::optional<LedgerEntry> first;
  for (const RangeState& state : initial_states) {
    const LedgerEntry entry = worker < state.ledger.size() ? state.ledger[worker] : LedgerEntry{};
    if (!first || entry.step < first->step) first = entry;
  }
  return first.value_or(LedgerEntry{});
}

// --- between workers and the coordinator (steps kept centrally) ---------------------------------

/// Worker to coordinator and, under some exchanges, to the owners or to the other workers: `step`
/// was the worker's last.
struct Ended {
  MemberId worker;
  Step step;
  /// True if the worker's member is leaving the job: others hand nothing over to this member, and
  /// the worker may have ended before its last step.
  bool leaves = false;
  static constexpr std::string_view name = "ended";
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.step, m.leaves); }
};

/// Worker to coordinator: all owners hold the worker's update `step`, so the worker's step is now
/// `step`. The worker asks to go on, or reports that it goes on in a run (Proceed::until).
struct Arrived {
  MemberId worker;
  Step step;
  /// True in a run that the coordinator has permitted: the worker does not wait for an answer.
  bool goes_on = false;
  /// Present if the barrier moves with the descent of the loss, and the worker knows it.
  std::optional<barrier::Descent> descent = std::nullopt;
  static constexpr std::string_view name = "arrived";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.step, m.goes_on, m.descent); }
};

/// Coordinator to worker: go on from `step`.
struct Proceed {
  Step step;
  /// If this is more than `step` + 1, the worker may run: it does not ask again before
  /// its step is `until`.
  Step until = 0;
  /// The step that all running workers have reached, as far as the coordinator knows.
  Step floor = 0;
  /// The last worker for which the receiver had to wait; nullopt if it did not wait or if the
  /// coordinator does not know.
  std::optional<MemberId> awaited = std::nullopt;
  static constexpr std::string_view name = "proceed";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.step, m.until, m.floor, m.awaited); }
};

/// Worker to coordinator, if workers hand in early (barrier::hands_in_early()): the worker has
/// computed its whole batch of step `step`.
struct BatchDone {
  MemberId worker;
  Step step;
  static constexpr std::string_view name = "batch-done";
  static constexpr bool is_barrier_control = true;
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.step); }
};

/// Coordinator to worker, if workers hand in early: another worker has computed its whole batch of
/// step `step`. The receiver hands in what it has computed of its own.
struct HandIn {
  Step step;
  static constexpr std::string_view name = "hand-in";
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
  /// As Ended::leaves, if its worker has ended.
  bool leaves = false;

  static constexpr std::string_view name = "worker-status";
  static constexpr auto fields(auto& m) {
    return std::tie(m.member, m.phase, m.step, m.held, m.leaves);
  }
};

constexpr WorkerStatus::Phase last_of(WorkerStatus::Phase) { return WorkerStatus::Phase::ended; }

/// To a worker: stop at the end of the step, or at once if the worker waits at the barrier. To the
/// coordinator: send Stop to each worker that waits now or arrives later.
struct Stop {
  static constexpr std::string_view name = "stop";
};

// --- between workers (steps kept by everyone) ---------------------------------------------------
// Workers ask again if no answer comes, so these messages may get lost (`is_asked_again`).

/// Asks the receiver for its step. `draw` numbers the draws of the sender.
struct StepQuery {
  MemberId from;
  std::uint64_t draw;
  static constexpr std::string_view name = "query";
  static constexpr bool is_barrier_control = true;
  static constexpr bool is_asked_again = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw); }
};

/// The pace of a worker that has pushed (barrier::Pace), without its step. It has durations only,
/// in nanoseconds, because the clocks of different machines are not comparable.
struct PaceReport {
  /// The largest duration: a year.
  static constexpr std::uint64_t duration_max_ns = 365ULL * 24 * 3600 * 1'000'000'000;

  /// How long ago the worker pushed.
  std::uint64_t since_push_ns = 0;
  /// The fields `interval`, `duration` and `waits` of barrier::Pace.
  std::uint64_t interval_ns = 0;
  std::uint64_t duration_ns = 0;
  bool waits = false;

  static constexpr auto fields(auto& m) {
    return std::tie(m.since_push_ns, m.interval_ns, m.duration_ns, m.waits);
  }
};

/// Answers a StepQuery: the sender's step. `draw` is copied from the query.
struct StepAnswer {
  MemberId from;
  std::uint64_t draw;
  Step step;
  /// Present if the job's barrier decides by paces, and the sender has pushed.
  std::optional<PaceReport> pace = std::nullopt;

  static constexpr std::string_view name = "answer";
  static constexpr bool is_barrier_control = true;
  static constexpr bool is_asked_again = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw, m.step, m.pace); }
};

/// Asks the receiver for a Notice as soon as the receiver's step reaches `floor`. A later request
/// of the same sender replaces an earlier one.
struct NotifyRequest {
  MemberId from;
  std::uint64_t draw;
  Step floor;

  static constexpr std::string_view name = "notify-request";
  static constexpr bool is_barrier_control = true;
  static constexpr bool is_asked_again = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw, m.floor); }
};

/// Answers a NotifyRequest: the sender's step has reached the floor.
struct Notice {
  MemberId from;
  std::uint64_t draw;
  static constexpr std::string_view name = "notice";
  static constexpr bool is_barrier_control = true;
  static constexpr bool is_asked_again = true;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.draw); }
};

// --- the lists ----------------------------------------------------------------------------------
// The codec, the sizes and the simulator's network are generated from these lists.

/// The messages between workers, and between workers and the coordinator. The messages of an
/// exchange are declared in its folder.
using Messages = TypeList<Ended, Arrived, Proceed, Stop, BatchDone, HandIn, StepQuery, StepAnswer,
                          NotifyRequest, Notice>;
using Message = AnyOf<Messages>;

}  // namespace starling::core
