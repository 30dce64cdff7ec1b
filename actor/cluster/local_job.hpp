/// A node's part of a job that runs on several nodes: the members on this node ("here"), each of
/// which is an actor, and the threads that compute for them. The members exchange packets with
/// members on other nodes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starling/actor/job/assignment.hpp"
#include "starling/actor/job/job.hpp"
#include "starling/actor/job/trace_buffer.hpp"
#include "starling/actor/types.hpp"
#include "starling/actor/wire/control.hpp"
#include "starling/base/result.hpp"

namespace starling::actor {

struct LocalJobOptions {
  /// The ids of all members of the job are below this.
  static constexpr core::MemberId members_max = 256;
  /// The number of threads that run actors; 0: half as many as there are processors.
  std::size_t control_threads = 0;
  /// Sends the packets that a member here makes in one event, in order, to members on other nodes.
  /// Called on several threads.
  std::function<void(std::vector<core::Envelope>)> send;
  /// Stops the job on all its nodes. A user's own actor asks for this, on any thread.
  std::function<void()> stop_job;
  /// Logs a line, on any thread.
  std::function<void(const std::string&)> log;
};

/// Thread-safe.
class LocalJob {
 public:
  LocalJob() = default;
  virtual ~LocalJob() = default;
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;

  /// Adds `local_members`: those members of a new job that are here. `first` is the job's first
  /// configuration.
  virtual void add_initial_members(const std::vector<core::Member>& local_members,
                                   const core::ConfigurationPtr& first) = 0;
  /// Adds `self`, which asks the members `seeds` to let it join the job.
  virtual void add_joiner(const core::Member& self, const std::vector<core::MemberId>& seeds) = 0;
  using OnStarted = std::function<void(Result<void>)>;
  /// Calls JobOptions::on_start, if there is one, with handles to all members of `configuration`,
  /// on a thread of this job's. Then calls `on_started` on that thread, with an Error if on_start
  /// threw. If there is no on_start, calls `on_started` at once. The members that were added answer
  /// questions before they are started. Requires: called at most once.
  virtual void start_user_actors(const core::ConfigurationPtr& configuration,
                                 OnStarted on_started) = 0;
  /// Starts the members that were added since the last call.
  virtual void start_members() = 0;

  /// Delivers a packet to a member here; drops the packet if its receiver is not here. If
  /// `may_handle_inline` is true and the member is idle, the caller's thread handles the packet.
  virtual void deliver(core::Envelope envelope, bool may_handle_inline) = 0;
  /// Reports to the members here that a member is dead, or is alive.
  virtual void report_liveness(const actor::LivenessUpdate& update) = 0;
  /// Stops workers at the end of their step. Members still answer reads of their ranges.
  virtual void stop() = 0;
  /// Makes the workers here begin no update for `duration` from now. A duration of 0 ends the
  /// pause.
  virtual void pause(core::Time duration) = 0;
  /// Makes the members here hand over the ranges that they own, and then leave the job.
  virtual void leave() = 0;

  /// Ends and removes `members`, which are here and were excluded.
  virtual void end_members(const std::vector<core::MemberId>& members) = 0;

  // The functions below wait for no member.

  /// Returns the last known report of each member here, and asks the members for new ones. A report
  /// has the member's present state and epoch, but its progress may be as old as the previous call.
  [[nodiscard]] virtual std::vector<actor::MemberReport> reports() = 0;
  /// Returns the latest configuration that a member here knows; null before the first.
  [[nodiscard]] virtual core::ConfigurationPtr configuration() = 0;
  /// Returns the recorded intervals of the workers here, from interval number `from` on; their
  /// times are in ns since the job started on this node (TraceBuffer::read).
  [[nodiscard]] virtual TraceBuffer::Part read_trace(std::uint64_t from) = 0;
  /// Returns the result of a flow whose program has ended here without an error.
  [[nodiscard]] virtual std::optional<wire::FlowResult> result() { return std::nullopt; }
  /// Returns what the members here have computed of a flow, without the node's id.
  [[nodiscard]] virtual wire::FlowReport flow_report() { return {}; }
  /// The time since the job started here, which the intervals of read_trace() count from.
  [[nodiscard]] virtual core::Time now() = 0;
  /// Reads the current states of the ranges that members here are primary of, and calls `on_read`
  /// with them on a thread of this job's. `request` bounds what each member returns. Leaves out a
  /// member that does not answer within 2 s.
  virtual void read_ranges(const actor::ReadRanges& request,
                           std::function<void(std::vector<core::RangeState>)> on_read) = 0;
};

/// Makes this node's part of a job, without members yet. Returns an Error if the options are not
/// valid, or if the job cannot go on from the assignment's states.
[[nodiscard]] Result<std::unique_ptr<LocalJob>> make_local_job(Assignment assignment,
                                                               LocalJobOptions options);

}  // namespace starling::actor
