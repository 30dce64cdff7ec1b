/// The typed interfaces of a job's actors: the messages that each of them accepts. The protocol's
/// messages are declared and explained in engine/core/message.hpp, the others in actor/types.hpp. A
/// user's own actors get the actors of JobActors.
#pragma once

#include <memory>
#include <vector>

#include "starling/actor/types.hpp"

namespace starling::actor {

// clang-format off: keeps one line and one comment for each signature.

/// Collects reports and models, to show progress, evaluate, stop and save. No other actor waits for
/// it.
using ObserverActor =
    Interface<void(DirectoryPtr),         // Names the job's actors.
              void(JobActorsPtr),         // Names them as a user's own actors see them.
              JobActorsPtr(actors_atom),  // A user's own actor asks for these.
              void(core::RangeState),     // The state of a range, which it asked for.
              void(start_atom),           // The job starts.
              void(Report),               // A worker's progress; answered by report_credit_atom.
              void(Evaluated),            // The compute pool has evaluated the model.
              void(Failure),              // The job cannot go on.
              void(core::Stop),           // The user wants the job to end.
              void(timer_atom),           // A timer has fired.
              void(quit_atom)>;           // The job is over.

/// One member of a job, with one or more parts: it computes updates (worker), owns ranges (owner),
/// or keeps the workers' steps (coordinator). Members exchange the protocol's messages as
/// LocalMessage in one process, and as packets between nodes. A member refuses a question to a part
/// that it does not have.
using MemberActor =
    Interface<void(DirectoryPtr),             // Names the actors of a job in one process.
              void(start_atom),               // Begin; on nodes, start or join the job.
              void(core::LocalMessage),       // A message of a member of this process.
              void(EnvelopePtr),              // A packet has arrived.
              void(Planned),                  // The plan of the worker's next step is ready.
              void(PartsComputed),            // The compute pool has parts of the worker's update.
              void(Computed),                 // The compute pool has the worker's update.
              void(ComputeFailed),            // The computation threw.
              void(TimerFired),               // A timer of its core has fired.
              void(timer_atom),               // An injected delay or a pause has ended.
              void(LivenessUpdate),           // Another member is dead, or alive.
              void(Pause),                    // Begin no update for some time.
              void(leave_atom),               // Finish the step, hand over, leave.
              void(core::Stop),               // Stop at the end of the step.
              void(no_delays_atom),           // No more injected delays.
              void(report_credit_atom),       // The observer has handled the last Report.
              void(core::Snapshot),           // The observer asks for this member's range states.
              core::Step(step_atom),          // Asks a worker for its step, even while it computes.
              core::StepsReport(steps_atom),  // Asks the coordinator for the workers' steps.
              core::Value(read_atom, core::AskValue),  // Asks an owner for present values.
              core::Answer(AskMember),                 // Asks another member, for an actor.
              void(report_atom),  // Publish its state and progress to its node.
              std::vector<core::RangeState>(ReadRanges),  // Asks for ranges it is primary of.
              void(quit_atom)>;                           // The job is over.

/// One member of a job that runs a flow.
using FlowMemberActor = Interface<void(start_atom),        // Start or join the job.
                                  void(EnvelopePtr),       // A packet has arrived.
                                  void(TimerFired),        // A timer of its core has fired.
                                  void(LivenessUpdate),    // Another member is dead, or alive.
                                  void(FlowActionBegun),   // The program needs a result.
                                  void(FlowPartEnded),     // A part was computed.
                                  void(FlowInput),         // Anything else that its core takes.
                                  void(FlowProgramEnded),  // The program has returned.
                                  void(core::Stop),        // Begin no further part.
                                  void(leave_atom),        // Leave the job.
                                  void(report_atom),       // Publish its state to its node.
                                  void(quit_atom)>;        // The job is over.

/// A member, on this node or another, as actors that are not members see it. It answers questions
/// within 10 s or with an error, and accepts none of the messages that members send each other.
using MemberHandle =
    Interface<core::Step(step_atom),          // Asks a worker for its step, even while it computes.
              core::StepsReport(steps_atom),  // Asks the coordinator for the workers' steps.
              core::Value(read_atom, core::AskValue)>;  // Asks an owner for present values.

/// Stands for the whole job. It ends when the job ends, so actors may monitor it.
using JobHandle = Interface<void(core::Stop),            // The user wants the job to end.
                            JobActorsPtr(actors_atom)>;  // Asks for the actors as they are now.

// clang-format on

/// A job, as a user's own actors see it. On several nodes, the members are those of one
/// configuration: at first, the one with which this node's part of the job began; in an answer to
/// `actors_atom`, the latest one that this node knows. A question to a member that has left
/// since then is refused.
struct JobActors {
  /// The members that compute updates, by member id.
  std::vector<MemberHandle> workers;
  /// The members that own ranges; in peer mode these are the workers.
  std::vector<MemberHandle> owners;
  /// The current coordinator; null except in central mode.
  MemberHandle coordinator;
  /// Answers `read_atom` for every range, as the range's present primary does.
  MemberHandle model;
  JobHandle job;
};

/// The actors of a job in one process. All fields are set before the first message of the job is
/// sent.
struct Directory {
  /// By member id.
  std::vector<MemberActor> members;
  /// The members that compute updates: the first elements of `members`.
  std::vector<MemberActor> workers;
  /// The members that own ranges. In peer mode these are the workers.
  std::vector<MemberActor> owners;
  /// Null except in central mode.
  MemberActor coordinator;
  ObserverActor observer;
};

}  // namespace starling::actor
