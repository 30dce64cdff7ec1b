/// The control messages between nodes and their clients, beside the packets of jobs: membership,
/// and requests with their replies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/wire/frame.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/membership/membership_message.hpp"

namespace starling::wire {

/// Keys and values as in a job file.
using JobSettings = std::vector<std::pair<std::string, std::string>>;

/// The state of a job, or how it has ended.
enum class JobState : std::uint8_t { preparing, running, done, stopped, failed };
constexpr JobState last_of(JobState) { return JobState::failed; }

/// The outcome of a job, as the client that followed it to its end reports it, or else as a node
/// saw it.
struct JobSummary {
  JobState state = JobState::done;
  /// Why it has failed or was stopped; empty where there is nothing to say.
  std::string why = {};
  /// By name, as `submit --json` prints them.
  std::vector<std::pair<std::string, double>> figures = {};

  static constexpr auto fields(auto& m) { return std::tie(m.state, m.why, m.figures); }
};

// --- requests -----------------------------------------------------------------------------------
// Each may be repeated without harm.

/// Starts a job on all nodes. The client draws the job's number.
struct SubmitJob {
  JobId job = 0;
  JobSettings settings;
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.settings); }
};
/// Prepares a job on `nodes` nodes: the receiver reads its data.
struct PrepareJob {
  JobId job = 0;
  JobSettings settings;
  std::uint32_t nodes = 1;
  /// The client that submitted it, as the node that it asked names it.
  std::string client = {};

  static constexpr auto fields(auto& m) { return std::tie(m.job, m.settings, m.nodes, m.client); }
};
/// Starts a prepared job with the members of its initial configuration, some of which are the
/// receiver's.
struct StartJob {
  JobId job = 0;
  core::ConfigurationPtr initial;
  /// Earlier numbers of the same job, under which it was prepared, or started with members that
  /// have died since. Jobs of these numbers end, and this one takes over the data read for them.
  std::vector<JobId> previous_ids = {};

  static constexpr auto fields(auto& m) { return std::tie(m.job, m.initial, m.previous_ids); }
};
/// Asks for a NodeStatus: the nodes that the receiver knows, the jobs that it runs, their progress.
struct GetStatus {};
/// Asks for a JobDescription, which is all that a node needs to join a job.
struct GetJob {
  JobId job = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job); }
};
/// Asks for the ranges that the receiver's members are primary of, from number `from` on, as many
/// as one reply holds.
struct ReadRanges {
  JobId job = 0;
  core::RangeId from = 0;
  /// Asks for the whole state, from which a job can go on, and not for the values alone.
  bool with_state = false;

  static constexpr auto fields(auto& m) { return std::tie(m.job, m.from, m.with_state); }
};
/// Asks workers to begin no update for this long from now, so that the model can be read between
/// two updates of each worker; 0: they go on.
struct PauseJob {
  JobId job = 0;
  std::uint32_t milliseconds = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.milliseconds); }
};
/// Asks workers to stop at the end of their step.
struct StopJob {
  JobId job = 0;
  /// The job has reached what it was to reach, and is not stopped early.
  bool is_done = false;

  static constexpr auto fields(auto& m) { return std::tie(m.job, m.is_done); }
};
/// Nobody needs the job's model any more.
struct CloseJob {
  JobId job = 0;
  /// Absent where no client has followed the job to its end.
  std::optional<JobSummary> summary = {};

  static constexpr auto fields(auto& m) { return std::tie(m.job, m.summary); }
};
/// Asks for JobRecords: the ended jobs that the receiver took part in.
struct GetJobRecords {};
/// Asks for the receiver's log, from line number `from` on.
struct GetLog {
  std::uint64_t from = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.from); }
};
/// Asks the receiver to hand over what it owns, and to leave.
struct LeaveCluster {};
/// The sender has no more requests: the receiver closes its connections to it. There is no reply.
struct Disconnect {};
using RequestBody =
    std::variant<SubmitJob, PrepareJob, StartJob, GetStatus, GetJob, ReadRanges, StopJob, CloseJob,
                 PauseJob, GetLog, LeaveCluster, Disconnect, GetJobRecords>;

// --- replies ------------------------------------------------------------------------------------

struct Refused {
  std::string why;
  /// Only the job's name is refused: the client may try another.
  bool is_name_taken = false;

  static constexpr auto fields(auto& m) { return std::tie(m.why, m.is_name_taken); }
};
struct Done {};
struct JobPrepared {
  /// A hash of the data: nodes whose fingerprints differ cannot train together.
  std::uint64_t fingerprint = 0;
  std::uint32_t ranges = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.fingerprint, m.ranges); }
};
/// A job that was submitted has begun.
struct JobBegun {
  /// Its number, which differs from the client's where the job had to be started anew.
  JobId job = 0;
  /// Names of nodes that have died or left since it was submitted: it begins without them.
  std::vector<std::string> lost;

  static constexpr auto fields(auto& m) { return std::tie(m.job, m.lost); }
};
/// The state and progress of one member of a job; see actor::MemberReport.
struct MemberStatus {
  core::MemberId member = 0;
  core::Incarnation incarnation = 0;
  std::uint8_t state = 0;
  std::string why;
  core::Step step = 0;
  std::uint64_t samples = 0;
  std::int64_t waited_ns = 0;
  /// The sum of the losses of all batches, and their number.
  double loss_sum = 0;
  std::uint64_t loss_count = 0;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  std::uint64_t drawn = 0;
  /// No update of its worker is in flight.
  bool is_paused = false;
  /// The number of ranges of which it holds every acknowledged update.
  std::uint32_t held = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.member, m.incarnation, m.state, m.why, m.step, m.samples, m.waited_ns,
                    m.loss_sum, m.loss_count, m.draws, m.passes, m.drawn, m.is_paused, m.held);
  }
};
struct JobStatus {
  JobId job = 0;
  JobSettings settings;
  /// The members on the sender's node.
  std::vector<MemberStatus> local_members;
  core::ConfigurationPtr configuration;
  /// The job's age, in ms, when the sender last saw one of its own workers complete a step; 0 where
  /// none has.
  std::uint64_t last_step_ms = 0;
  /// The client that submitted it.
  std::string client = {};
  /// Why the job cannot go on now, and which nodes it waits for; empty where it can.
  std::string blocked_reason = {};
  /// Why the job was given up; empty where it was not.
  std::string give_up_reason = {};
  /// The state as this node knows it: `done` or `stopped` as soon as its workers were asked to end.
  JobState state = JobState::running;
  /// When it began or, before that, when this node accepted it, by this node's clock: ms since
  /// 1970, UTC.
  std::int64_t since_ms = 0;
  /// The steps that each worker is to make; 0 where steps do not end the job.
  core::Step steps_total = 0;
  /// Steps that each worker makes in a pass over the training data; 0 where nobody knows yet.
  core::Step steps_per_pass = 0;
  /// The job's time limit in ms; 0 where it has none.
  std::uint64_t time_limit_ms = 0;
  /// Updates per second of the workers here, over the last 5 s.
  double updates_per_s = 0;
  /// The mean loss of the latest batches of the workers here, and the number of these batches:
  /// those of the last seconds in which there were any.
  double loss = 0;
  std::uint64_t loss_count = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.job, m.settings, m.local_members, m.configuration, m.last_step_ms, m.client,
                    m.blocked_reason, m.give_up_reason, m.since_ms, m.steps_total, m.steps_per_pass,
                    m.time_limit_ms, m.updates_per_s, m.loss, m.loss_count, m.state);
  }
};
struct NodeStatus {
  core::NodeRecord self;
  std::vector<core::NodeRecord> others;
  core::MembershipCounts counts;
  std::vector<JobStatus> jobs;
  /// The nodes among `others` whose certificate was revoked.
  std::vector<core::NodeId> revoked = {};

  static constexpr auto fields(auto& m) {
    return std::tie(m.self, m.others, m.counts, m.jobs, m.revoked);
  }
};
/// A job that has ended and was closed, as a node that took part in it keeps it.
struct JobRecord {
  JobId job = 0;
  std::string name = {};
  /// Its model, data, mode and barrier.
  std::string description = {};
  /// The client that submitted it.
  std::string client = {};
  JobSummary summary = {};
  /// Whether `summary` comes from a client that followed the job to its end; else this node made
  /// it.
  bool is_from_client = false;
  /// By the node's clock: ms since 1970, UTC.
  std::int64_t began_ms = 0;
  std::int64_t ended_ms = 0;
  /// The sum of the updates of the workers on this node.
  std::uint64_t updates = 0;
  core::Step step_max = 0;
  core::Step steps_total = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.job, m.name, m.description, m.client, m.summary, m.is_from_client, m.began_ms,
                    m.ended_ms, m.updates, m.step_max, m.steps_total);
  }
};
struct JobRecords {
  std::vector<JobRecord> jobs;
  static constexpr auto fields(auto& m) { return std::tie(m.jobs); }
};
/// The reply to GetJob.
struct JobDescription {
  JobSettings settings;
  /// The number of workers that the job was founded with.
  std::uint32_t workers = 0;
  core::ConfigurationPtr configuration;
  /// The time since the job was founded, in ms.
  std::uint64_t age_ms = 0;
  /// The client that submitted it.
  std::string client = {};

  static constexpr auto fields(auto& m) {
    return std::tie(m.settings, m.workers, m.configuration, m.age_ms, m.client);
  }
};
struct Ranges {
  std::vector<core::RangeState> states;
  /// The range to ask for next; 0: there are no more.
  core::RangeId next = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.states, m.next); }
};
struct LogLine {
  /// By the node's clock: microseconds since 1970, UTC.
  std::int64_t time_us = 0;
  /// The name of the job that it is about; empty where it is about none.
  std::string job = {};
  std::string text = {};

  static constexpr auto fields(auto& m) { return std::tie(m.time_us, m.job, m.text); }
};
struct LogLines {
  /// The number of the first line.
  std::uint64_t from = 0;
  std::vector<LogLine> lines;
  /// The line number to ask for next.
  std::uint64_t next = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.from, m.lines, m.next); }
};
using ReplyBody = std::variant<Refused, Done, JobPrepared, NodeStatus, JobDescription, Ranges,
                               LogLines, JobBegun, JobRecords>;

/// `number` is the requester's, and comes back with the reply.
struct Request {
  std::uint64_t number = 0;
  RequestBody body;
  static constexpr auto fields(auto& m) { return std::tie(m.number, m.body); }
};
struct Reply {
  std::uint64_t number = 0;
  ReplyBody body;
  static constexpr auto fields(auto& m) { return std::tie(m.number, m.body); }
};

struct ControlMessage {
  /// 0 where the sender is no node.
  NodeId from = 0;
  /// The sender's address.
  std::string address;
  std::variant<core::MembershipMessage, Request, Reply> body;

  static constexpr auto fields(auto& m) { return std::tie(m.from, m.address, m.body); }
};

[[nodiscard]] Frame encode(const ControlMessage& message);
[[nodiscard]] Result<ControlMessage> decode_control(const FrameView& frame);

}  // namespace starling::wire
