/// The typed interfaces of a job's actors: the messages that may be sent to each. The lists of the
/// protocol's messages, with a comment for each, stand in engine/core/message.hpp, the others in
/// actor/types.hpp; an actor of your own may send to any of these.
#pragma once

#include <vector>

#include "starling/actor/types.hpp"

namespace starling::actor {

// clang-format off: one line and one comment a signature.

/// Computes updates, one step after the other.
using WorkerActor =
    Takes<core::WorkerMessages,
          void(DirectoryPtr),        // These are the job's members.
          void(start_atom),          // All know the members: the job starts.
          void(Planned),             // The job has planned what it reads next.
          void(Computed),            // The compute pool has its update.
          void(ComputeFailed),       // The computation threw.
          void(report_credit_atom),  // The observer has taken the worker's last report.
          void(skip_delays_atom),    // The job is stopping: no more injected delays.
          void(tick_atom),           // A timer.
          core::Step(step_atom),     // Asks for its step. Anyone may, even while it computes.
          void(quit_atom)>;          // The job is over.

/// Owns ranges of the parameters.
using OwnerActor = Takes<core::OwnerMessages,
                         void(DirectoryPtr),  // These are the job's members.
                         // Anyone reads a range as it is now; an error if it is not here.
                         core::Value(read_atom, core::Pull),
                         void(quit_atom)>;  // The job is over.

/// Keeps the steps in central mode.
using CoordinatorActor = Takes<core::CoordinatorMessages,
                               void(DirectoryPtr),      // These are the job's members.
                               void(tick_atom),         // A timer.
                               StepsReport(step_atom),  // Asks for the workers' steps. Anyone may.
                               void(quit_atom)>;        // The job is over.

/// Collects reports for display, evaluation, stopping and saving. Nobody waits for it.
using ObserverActor = Takes<core::ObserverMessages,
                            void(DirectoryPtr),  // These are the job's members.
                            void(start_atom),    // The job starts.
                            void(Report),  // A worker's progress; answered by report_credit_atom.
                            void(Evaluated),   // The compute pool has evaluated the model.
                            void(Failure),     // The job cannot go on.
                            void(core::Stop),  // The user wants it to end.
                            void(tick_atom),   // A timer.
                            void(quit_atom)>;  // The job is over.

/// A worker that also owns ranges: takes all messages of a worker and of an owner.
using PeerActor = AlsoTakes<WorkerActor, core::OwnerMessages, core::Value(read_atom, core::Pull)>;

/// One member of a job that runs on several nodes: its worker, its ranges, and the coordinator if
/// this member is the coordinator. Packets reach the other members.
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
              void(skip_delays_atom),                     // No more injected delays.
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
