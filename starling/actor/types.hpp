/// What travels in mailboxes: the core's messages, and what an actor needs beside them. Everything
/// stays in this process; tensors are shared, so none of it is serialised here.
#pragma once

#include <memory>
#include <string>

#include "starling/actor/caf.hpp"
#include "starling/engine/core/message.hpp"
#include "starling/engine/core/peer_message.hpp"
#include "starling/engine/core/worker.hpp"
#include "starling/models/model.hpp"

namespace starling::actor {

/// Who is who in a job; defined beside the interfaces.
struct Directory;
using DirectoryPtr = std::shared_ptr<const Directory>;

/// The job has said what a worker reads next.
struct Planned {
  core::Step step = 0;
  std::vector<core::RangeRows> wanted;
};
/// A computation of a worker's has ended.
struct Computed {
  core::Step step = 0;
  core::Update update;
  double loss = 0;
  /// Time the computation took.
  core::Time took{};
};
/// A computation of a worker's threw, or gave numbers that are none.
struct ComputeFailed {
  core::Step step = 0;
  std::string why;
  /// Trying again cannot help.
  bool fatal = false;
};

/// What a worker tells the observer; at most one is under way for each worker, beside its last.
struct Report {
  core::MemberId worker = 0;
  core::Step step = 0;
  /// Samples of the steps finished.
  std::uint64_t samples = 0;
  core::Time waited{};
  core::Time computed{};
  /// Time that injected delays were to keep its updates back.
  core::Time delayed{};
  /// Losses since the last report.
  double loss_sum = 0;
  std::uint64_t losses = 0;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// How often others have drawn it.
  std::uint64_t drawn = 0;
  bool done = false;
};

/// The coordinator's view of the steps.
struct StepsReport {
  core::Step min = 0;
  core::Step max = 0;
  core::Step spread_max = 0;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
};

/// Figures about the model as it was when they were asked for.
struct Evaluated {
  bool final = false;
  models::Metrics train;
  models::Metrics test;
  /// The job's own criterion says that it is good enough.
  bool stop = false;
};

/// The job cannot go on, or one of its actors ended unasked.
struct Failure {
  std::string why;
  /// A part of the model is lost with its owner.
  bool lost = false;
};

/// A packet of a job's channels has come.
using EnvelopePtr = std::shared_ptr<const core::Envelope>;

/// One of several timers.
struct KeyTick {
  std::uint64_t key = 0;
};

/// What failure detection thinks of a member.
struct LivenessUpdate {
  core::MemberId member = 0;
  core::Incarnation incarnation = 0;
  bool dead = false;
};

/// Begin no update for so long from now; 0: go on.
struct Pause {
  core::Time duration{};
};

/// Which of its ranges a member is to show: from number `from` on, until they hold `bytes_max`.
struct ReadRanges {
  core::RangeId from = 0;
  std::size_t bytes_max = SIZE_MAX;
};

/// How a member stands.
struct MemberReport {
  enum class State { joining, running, done, excluded, failed };
  core::MemberId member = 0;
  core::Incarnation incarnation = 0;
  State state = State::joining;
  /// Why it failed.
  std::string why;
  core::Epoch epoch = 0;
  /// Ranges of which it holds all that was acknowledged.
  std::uint32_t held = 0;
  /// Of its worker; zero where it has none.
  Report worker;
  /// No update of its worker is in flight.
  bool is_paused = false;
};

}  // namespace starling::actor

CAF_BEGIN_TYPE_ID_BLOCK(starling, caf::first_custom_type_id)

CAF_ADD_TYPE_ID(starling, (starling::core::Pull))
CAF_ADD_TYPE_ID(starling, (starling::core::Value))
CAF_ADD_TYPE_ID(starling, (starling::core::Push))
CAF_ADD_TYPE_ID(starling, (starling::core::Ack))
CAF_ADD_TYPE_ID(starling, (starling::core::Ended))
CAF_ADD_TYPE_ID(starling, (starling::core::Arrived))
CAF_ADD_TYPE_ID(starling, (starling::core::Proceed))
CAF_ADD_TYPE_ID(starling, (starling::core::Stop))
CAF_ADD_TYPE_ID(starling, (starling::core::StepQuery))
CAF_ADD_TYPE_ID(starling, (starling::core::StepAnswer))
CAF_ADD_TYPE_ID(starling, (starling::core::NotifyAt))
CAF_ADD_TYPE_ID(starling, (starling::core::CaughtUp))
CAF_ADD_TYPE_ID(starling, (starling::core::Snapshot))
CAF_ADD_TYPE_ID(starling, (starling::core::RangeState))
CAF_ADD_TYPE_ID(starling, (starling::core::ConfigurationPtr))
CAF_ADD_TYPE_ID(starling, (std::vector<starling::core::RangeState>))
CAF_ADD_TYPE_ID(starling, (starling::actor::DirectoryPtr))
CAF_ADD_TYPE_ID(starling, (starling::actor::Planned))
CAF_ADD_TYPE_ID(starling, (starling::actor::Computed))
CAF_ADD_TYPE_ID(starling, (starling::actor::Evaluated))
CAF_ADD_TYPE_ID(starling, (starling::actor::ComputeFailed))
CAF_ADD_TYPE_ID(starling, (starling::actor::Report))
CAF_ADD_TYPE_ID(starling, (starling::actor::StepsReport))
CAF_ADD_TYPE_ID(starling, (starling::actor::Failure))
CAF_ADD_TYPE_ID(starling, (starling::actor::MemberReport))
CAF_ADD_TYPE_ID(starling, (starling::actor::LivenessUpdate))
CAF_ADD_TYPE_ID(starling, (starling::actor::KeyTick))
CAF_ADD_TYPE_ID(starling, (starling::actor::EnvelopePtr))
CAF_ADD_TYPE_ID(starling, (starling::actor::Pause))
CAF_ADD_TYPE_ID(starling, (starling::actor::ReadRanges))

CAF_ADD_ATOM(starling, starling::actor, start_atom, "start")
CAF_ADD_ATOM(starling, starling::actor, tick_atom, "tick")
CAF_ADD_ATOM(starling, starling::actor, step_atom, "step")
CAF_ADD_ATOM(starling, starling::actor, credit_atom, "credit")
CAF_ADD_ATOM(starling, starling::actor, hurry_atom, "hurry")
CAF_ADD_ATOM(starling, starling::actor, read_atom, "read")
CAF_ADD_ATOM(starling, starling::actor, quit_atom, "quit")
CAF_ADD_ATOM(starling, starling::actor, leave_atom, "leave")
CAF_ADD_ATOM(starling, starling::actor, report_atom, "report")

CAF_END_TYPE_ID_BLOCK(starling)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Pull)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Value)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Push)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Ack)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Proceed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Stop)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::StepQuery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::StepAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::NotifyAt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::CaughtUp)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::Snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::RangeState)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::DirectoryPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::Planned)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::Computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::Evaluated)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::ComputeFailed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::Report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::StepsReport)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::Failure)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::EnvelopePtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::Pause)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::ReadRanges)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::KeyTick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::LivenessUpdate)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::actor::MemberReport)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(starling::core::ConfigurationPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::vector<starling::core::RangeState>)
