/// The messages that actors of one process exchange besides those of the protocol
/// (engine/core/message.hpp), and the list of all types that travel in mailboxes. Nothing in a
/// mailbox is serialised: sender and receiver share the tensors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/caf.hpp"
#include "starling/engine/core/deals/deal.hpp"
#include "starling/engine/core/flow/messages.hpp"
#include "starling/engine/core/member/peer_message.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/core/worker/worker.hpp"
#include "starling/engine/flow/plan/plan.hpp"
#include "starling/models/model.hpp"

namespace starling::actor {

/// The actors of a job, sorted into workers, owners and the coordinator; defined in interfaces.hpp.
struct Directory;
using DirectoryPtr = std::shared_ptr<const Directory>;
struct JobActors;
using JobActorsPtr = std::shared_ptr<const JobActors>;

/// The result of Task::plan().
struct Planned {
  /// The number of steps that the worker has finished.
  core::Step step = 0;
  /// The ranges, or the rows of them, that the worker reads for the step after `step`.
  std::vector<core::RangeRows> plan;
};
/// Parts of the result of Task::compute(), which still computes the other parts.
struct PartsComputed {
  /// The number of steps that the worker had finished before this one.
  core::Step step = 0;
  core::EarlyParts parts;
};
/// The result of Task::compute().
struct Computed {
  /// The number of steps that the worker had finished before this one.
  core::Step step = 0;
  core::Update update;
  /// The duration of the computation.
  core::Time duration{};
};
/// A worker's computation threw, or returned an update that cannot be pushed, such as one with NaN.
struct ComputeFailed {
  /// The number of steps that the worker had finished before this one.
  core::Step step = 0;
  std::string why;
  /// The worker must not try the step again, because it would fail again.
  bool is_fatal = false;
};

/// A worker's progress, sent to the observer. Each worker has at most one report in flight, besides
/// the one after its last step.
struct Report {
  core::MemberId worker = 0;
  core::Step step = 0;
  /// The number of samples in all steps that the worker has finished.
  std::uint64_t samples = 0;
  /// The time since the worker started, up to its end if it has ended.
  core::Time active_time{};
  /// The total times for which the worker waited at barriers, and for which it computed.
  core::Time wait_time{};
  core::Time compute_time{};
  /// The total time for which injected delays held the worker's updates back.
  core::Time delay_time{};
  /// The sum and the number of the losses: since the last report that the observer got, or since
  /// the start if this is part of a MemberReport.
  double loss_sum = 0;
  std::uint64_t loss_count = 0;
  /// The number of steps that this incarnation of the worker has finished: `step` without the steps
  /// with which it began.
  std::uint64_t updates = 0;
  /// The number of draws at the worker's barrier, and of those that let the worker pass.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// The s and beta of this worker's barrier or, if the sender is the coordinator, of all workers'
  /// barriers; zeros unless the barrier tunes itself.
  barrier::TunedSum tuned = {};
  /// How often other workers have drawn this one.
  std::uint64_t times_drawn = 0;
  core::ReadCounts reads = {};
  /// The worker has made its last step.
  bool is_done = false;
  /// The worker sent this report when it made `step`: the report did not wait for the observer.
  bool is_prompt = false;
  core::DealProgress deal = {};
};

/// The metrics of the model that the observer has had evaluated.
struct Evaluated {
  /// This is the evaluation at the job's end.
  bool is_final = false;
  models::Metrics train;
  models::Metrics test;
  /// JobOptions::stop_when returned true for the model.
  bool meets_stop_criterion = false;
};

/// The job cannot go on, or one of its actors ended although nobody asked it to.
struct Failure {
  std::string why;
  /// An owner has ended: the part of the model that it held is lost.
  bool is_owner_lost = false;
};

/// A packet of a job's channels has arrived.
using EnvelopePtr = std::shared_ptr<const core::Envelope>;

/// The timer `key` of a member's core has fired.
struct TimerFired {
  std::uint64_t key = 0;
};

/// Failure detection considers a member dead, or alive.
struct LivenessUpdate {
  core::MemberId member = 0;
  core::Incarnation incarnation = 0;
  bool is_dead = false;
};

/// Asks a worker to begin no update for `duration` from now. A duration of 0 ends the pause.
struct Pause {
  core::Time duration{};
};

/// Asks a member for the states of the ranges that it is primary of: from range `from` on, until
/// their values hold `bytes_max` bytes. The last range may exceed the limit.
struct ReadRanges {
  core::RangeId from = 0;
  std::size_t bytes_max = SIZE_MAX;
};

/// Asks a member to get an answer from another one: from `member` or, if that is absent, from the
/// coordinator or the primary of the range (see core::MemberCore::ask).
struct AskMember {
  std::optional<core::MemberId> member;
  core::Question question;
};

/// The state and progress of a member.
struct MemberReport {
  enum class State {
    /// The council has not admitted the member yet.
    joining,
    running,
    /// Its worker has made its last step, or it has no worker.
    done,
    /// The council has removed the member, because it was declared dead or has left.
    excluded,
    /// `why` says why the member cannot go on.
    failed,
  };
  core::MemberId member = 0;
  core::Incarnation incarnation = 0;
  State state = State::joining;
  /// The reason in state `failed`; otherwise empty.
  std::string why;
  /// The epoch of the latest configuration that the member knows.
  core::Epoch epoch = 0;
  /// The number of ranges of which the member holds every acknowledged update.
  std::uint32_t ranges_held = 0;
  /// In state `done`: a hash of the member's copy of the model, if the exchange keeps the copies of
  /// all workers equal.
  core::CopyHash copy_hash = {};
  /// The progress of the member's worker; all zeros if the member has no worker.
  Report worker;
  /// True if no update of the member's worker is in flight.
  bool is_paused = false;
  /// How many `Pause` messages the member has handled.
  std::uint64_t pauses = 0;
  /// The latest deal of samples that the member knows; null if the job deals no samples.
  std::shared_ptr<const core::Deal> deal = nullptr;
  /// The progress of the workers that are not in the configuration any more, as far as the updates
  /// that the member holds show it.
  std::vector<core::WorkerProgress> departed = {};
};

/// An input for a member that runs a flow, from its program or from a thread that computes parts.
using FlowInput = core::AnyOf<core::FlowInputs>;
/// The program of a flow begins an action.
struct FlowActionBegun {
  core::ActionPtr action;
  std::shared_ptr<const flow::Plan> plan;
};
/// A part of a flow was computed; `output` is null if that has failed.
struct FlowPartEnded {
  core::TaskEnded ended;
  flow::Output output;
};
/// The program of a flow has returned; `error` is empty if it has not failed.
struct FlowProgramEnded {
  std::string error;
};

/// The types that travel in mailboxes.
using MailboxTypes = core::Concat<
    core::Messages,
    core::TypeList<core::Value, core::Snapshot, core::RangeState, std::vector<core::RangeState>,
                   DirectoryPtr, JobActorsPtr, Planned, PartsComputed, Computed, Evaluated,
                   ComputeFailed, Report, core::StepsReport, Failure, MemberReport, AskMember,
                   LivenessUpdate, TimerFired, EnvelopePtr, core::LocalMessage, core::AskValue,
                   core::Answer, Pause, ReadRanges, FlowInput, FlowActionBegun, FlowPartEnded,
                   FlowProgramEnded>>;

}  // namespace starling::actor

/// CAF may pass these types without serialising them: all mailboxes are in one process.
template <class T>
requires starling::core::IsIn<T, starling::actor::MailboxTypes>
struct caf::allowed_unsafe_message_type<T> : std::true_type {
};

CAF_ADD_ATOM(starling, starling::actor, start_atom, "start")
CAF_ADD_ATOM(starling, starling::actor, timer_atom, "timer")
CAF_ADD_ATOM(starling, starling::actor, step_atom, "step")
CAF_ADD_ATOM(starling, starling::actor, steps_atom, "steps")
CAF_ADD_ATOM(starling, starling::actor, report_credit_atom, "credit")
CAF_ADD_ATOM(starling, starling::actor, no_delays_atom, "no_delays")
CAF_ADD_ATOM(starling, starling::actor, read_atom, "read")
CAF_ADD_ATOM(starling, starling::actor, quit_atom, "quit")
CAF_ADD_ATOM(starling, starling::actor, leave_atom, "leave")
CAF_ADD_ATOM(starling, starling::actor, report_atom, "report")
CAF_ADD_ATOM(starling, starling::actor, actors_atom, "actors")
