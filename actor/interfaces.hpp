/// The typed interfaces of a job's actors: the messages that may be sent to each. Messages are in
/// engine/core/message.hpp and actor/types.hpp; an actor of your own may send to any of these.
#pragma once

#include <vector>

#include "starling/actor/types.hpp"

namespace starling::actor {

// clang-format off: one line and one comment a signature.

/// Computes updates, one step after the other.
using WorkerActor =
    Interface<void(DirectoryPtr),      // These are the job's members.
              void(start_atom),        // All know the members: the job starts.
              void(core::Value),       // An owner answers a Pull.
              void(core::Ack),         // An owner holds a push.
              void(core::Proceed),     // The coordinator lets it pass.
              void(core::Stop),        // Stop at the end of the step.
              void(core::StepQuery),   // Another worker's barrier asks for its step.
              void(core::StepAnswer),  // The answer to its own query.
              void(core::NotifyAt),    // Another worker waits for it.
              void(core::CaughtUp),    // The one it waits for has caught up.
              void(Planned),           // The job has planned what it reads next.
              void(Computed),          // The compute pool has its update.
              void(ComputeFailed),     // The computation threw.
              void(credit_atom),      // The observer has taken its report and may be sent the next.
              void(hurry_atom),       // The job is stopping: no more injected delays.
              void(tick_atom),        // A timer.
              core::Step(step_atom),  // Asks for its step. Anyone may, even while it computes.
              void(quit_atom)>;       // The job is over.

/// Owns ranges of the parameters.
using OwnerActor = Interface<void(DirectoryPtr),    // These are the job's members.
                             void(core::Pull),      // A worker reads a range.
                             void(core::Push),      // A worker's update of a range.
                             void(core::Ended),     // A worker's last step.
                             void(core::Snapshot),  // The observer wants the state of all ranges.
                             // Anyone reads a range as it is now; an error where it is not here.
                             core::Value(read_atom, core::Pull),
                             void(quit_atom)>;  // The job is over.

/// Keeps the steps in central mode.
using CoordinatorActor =
    Interface<void(DirectoryPtr),      // These are the job's members.
              void(core::Arrived),     // A worker has finished a step and wants to pass.
              void(core::Ended),       // A worker's last step.
              void(core::Stop),        // Stop everyone who waits or arrives.
              void(tick_atom),         // A timer.
              StepsReport(step_atom),  // Asks for the workers' steps. Anyone may.
              void(quit_atom)>;        // The job is over.

/// Collects reports for display, evaluation, stopping and saving. Nobody waits for it.
using ObserverActor = Interface<void(DirectoryPtr),  // These are the job's members.
                                void(start_atom),    // The job starts.
                                void(Report),        // A worker's progress; answered with a credit.
                                void(core::RangeState),  // An owner's state of a range.
                                void(Evaluated),   // The compute pool has evaluated the model.
                                void(Failure),     // The job cannot go on.
                                void(core::Stop),  // The user wants it to end.
                                void(tick_atom),   // A timer.
                                void(quit_atom)>;  // The job is over.

/// A worker that also owns ranges: takes all messages of a worker and of an owner.
using PeerActor = WorkerActor::extend<Handles<void(core::Pull)>, Handles<void(core::Push)>,
                                      Handles<void(core::Ended)>, Handles<void(core::Snapshot)>,
                                      Handles<core::Value(read_atom, core::Pull)>>;

/// One member of a job that runs on several nodes: its worker, its ranges, the coordinator where it
/// is here. The other members are reached by packets.
using MemberActor =
    Interface<void(start_atom),                           // Found the job, or join it.
              void(EnvelopePtr),                          // A packet has come.
              void(Planned),                              // The job has planned what it reads next.
              void(Computed),                             // The compute pool has its update.
              void(ComputeFailed),                        // The computation threw.
              void(KeyTick),                              // A timer of its core.
              void(tick_atom),                            // A kept-back update or a pause is due.
              void(LivenessUpdate),                       // Another member is dead, or is not.
              void(Pause),                                // Begin no update for a while.
              void(leave_atom),                           // Make the last step, hand over, leave.
              void(core::Stop),                           // Stop at the end of the step.
              void(hurry_atom),                           // No more injected delays.
              MemberReport(report_atom),                  // Asks for its state and progress.
              core::ConfigurationPtr(step_atom),          // Asks for the latest it knows.
              std::vector<core::RangeState>(ReadRanges),  // Asks for ranges it is primary of.
              void(quit_atom)>;                           // The job is over.

// clang-format on

/// The members of a job. Complete before the first message of the job is sent.
struct Directory {
  std::vector<WorkerActor> workers;
  std::vector<OwnerActor> owners;
  /// Absent unless the steps are central.
  CoordinatorActor coordinator;
  ObserverActor observer;
};

}  // namespace starling::actor
