/// The typed interfaces of a job's actors: the messages that each of them accepts. The protocol's
/// messages are declared and explained in engine/core/message.hpp, the others in actor/types.hpp. A
/// user's own actors may send to all of these actors.
#pragma once

#include <vector>

#include "starling/actor/types.hpp"

namespace starling::actor {

// clang-format off: keeps one line and one comment for each signature.

/// Computes updates, one step after the other.
using WorkerActor =
    Takes<core::WorkerMessages,
          void(DirectoryPtr),        // Names the job's actors.
          void(start_atom),          // The job starts: every actor has the directory.
          void(Planned),             // The job has planned what it reads next.
          void(Computed),            // The compute pool has its update.
          void(ComputeFailed),       // The computation threw.
          void(report_credit_atom),  // The observer has handled the worker's last report.
          void(skip_delays_atom),    // The job is stopping: no more injected delays.
          void(timer_atom),          // A timer has fired.
          core::Step(step_atom),     // Asks for its step. Any actor may, even while it computes.
          void(quit_atom)>;          // The job is over.

/// Owns ranges of the parameters.
using OwnerActor = Takes<core::OwnerMessages,
                         void(DirectoryPtr),  // Names the job's actors.
                         // Asks for a range's present values; an error if it is not held here.
                         core::Value(read_atom, core::Pull),
                         void(quit_atom)>;  // The job is over.

/// Keeps the workers' steps in central mode, and tells workers when they may pass the barrier.
using CoordinatorActor =
    Takes<core::CoordinatorMessages,
          void(DirectoryPtr),      // Names the job's actors.
          void(timer_atom),        // A timer has fired.
          StepsReport(step_atom),  // Asks for the workers' steps. Any actor may.
          void(quit_atom)>;        // The job is over.

/// Collects reports and models, to show progress, evaluate, stop and save. No other actor waits for
/// it.
using ObserverActor = Takes<core::ObserverMessages,
                            void(DirectoryPtr),  // Names the job's actors.
                            void(start_atom),    // The job starts.
                            void(Report),  // A worker's progress; answered by report_credit_atom.
                            void(Evaluated),   // The compute pool has evaluated the model.
                            void(Failure),     // The job cannot go on.
                            void(core::Stop),  // The user wants the job to end.
                            void(timer_atom),  // A timer has fired.
                            void(quit_atom)>;  // The job is over.

/// A worker that also owns ranges: takes all messages of a worker and of an owner.
using PeerActor = AlsoTakes<WorkerActor, core::OwnerMessages, core::Value(read_atom, core::Pull)>;

/// One member of a job that runs on several nodes: its worker, its ranges, and the coordinator if
/// this member is the coordinator. It exchanges packets with the other members.
using MemberActor =
    Interface<void(start_atom),           // Found the job, or join it.
              void(EnvelopePtr),          // A packet has arrived.
              void(Planned),              // The job has planned what it reads next.
              void(Computed),             // The compute pool has its update.
              void(ComputeFailed),        // The computation threw.
              void(TimerFired),           // A timer of its core has fired.
              void(timer_atom),           // An injected delay or a pause has ended.
              void(LivenessUpdate),       // Another member is dead, or alive.
              void(Pause),                // Begin no update for some time.
              void(leave_atom),           // Finish the step, hand over, leave.
              void(core::Stop),           // Stop at the end of the step.
              void(skip_delays_atom),     // No more injected delays.
              MemberReport(report_atom),  // Asks for its state and progress.
              core::ConfigurationPtr(configuration_atom),  // Asks for the latest configuration.
              std::vector<core::RangeState>(ReadRanges),   // Asks for ranges it is primary of.
              void(quit_atom)>;                            // The job is over.

// clang-format on

/// The actors of a job. Complete before the first message of the job is sent. Peers are in both
/// `workers` and `owners`.
struct Directory {
  std::vector<WorkerActor> workers;
  std::vector<OwnerActor> owners;
  /// Null except in central mode.
  CoordinatorActor coordinator;
  ObserverActor observer;
};

}  // namespace starling::actor
