/// The control messages between nodes, and between nodes and clients: the messages of membership,
/// and requests with their replies. Packets of jobs are not control messages (frame.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/wire/follower_messages.hpp"
#include "starling/actor/wire/frame.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/deals/deal.hpp"
#include "starling/engine/core/flow/flow_report.hpp"
#include "starling/engine/core/flow/flow_result.hpp"
#include "starling/engine/core/membership/membership_message.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::wire {

/// Options and their values, as in a job file.
using JobSettings = std::vector<std::pair<std::string, std::string>>;

/// The last three say how the job ended.
enum class JobState : std::uint8_t { preparing, running, done, stopped, failed };
constexpr JobState last_of(JobState) { return JobState::failed; }

/// The outcome of a job, as reported by the client that followed it to its end or, without such a
/// client, as a node saw it.
struct JobSummary {
  JobState state = JobState::done;
  /// Why the job failed or was stopped; empty if there is no reason to name.
  std::string why = {};
  /// The job's results as names and values, as `submit --json` prints them.
  std::vector<std::pair<std::string, double>> figures = {};
  static constexpr auto fields(auto& m) { return std::tie(m.state, m.why, m.figures); }
};

// --- requests -----------------------------------------------------------------------------------
// A requester may send each of them again: they are idempotent.

/// Asks the receiver to start a job on all nodes. The client has drawn the id `job`.
struct SubmitJob {
  JobId job = 0;
  JobSettings settings;
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.settings); }
};
/// Asks the receiver to prepare a job that will run on `nodes` nodes, and to read its data.
struct PrepareJob {
  JobId job = 0;
  JobSettings settings;
  std::uint32_t nodes = 1;
  /// The name of the client that submitted the job. The node that received SubmitJob fills it in.
  std::string client = {};
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.settings, m.nodes, m.client); }
};
/// Asks the receiver to start a prepared job with its members in the initial configuration.
struct StartJob {
  JobId job = 0;
  core::ConfigurationPtr initial_configuration;
  /// The ids of earlier attempts to start the job. The receiver ends them and reuses their data.
  std::vector<JobId> previous_ids = {};
  static constexpr auto fields(auto& m) {
    return std::tie(m.job, m.initial_configuration, m.previous_ids);
  }
};
/// Asks for a NodeStatus.
struct GetStatus {
  std::optional<JobId> job = {};  ///< The reply has only this job; absent: all jobs.
  bool with_nodes = true;         ///< False: NodeStatus::others stays empty.
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.with_nodes); }
};
/// Asks for a JobDescription, with which a node can join the job.
struct GetJob {
  JobId job = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job); }
};
/// Asks the receiver's workers to begin no update for `milliseconds` from now; with 0, to go on.
struct PauseJob {
  JobId job = 0;
  std::uint32_t milliseconds = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.milliseconds); }
};
/// Asks the receiver's workers to stop at the end of their step.
struct StopJob {
  JobId job = 0;
  bool is_done = false;  ///< False if the job is stopped before it has reached its goal.
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.is_done); }
};
/// Asks the receiver to end its members of a job, because nobody needs the job's model any more.
struct CloseJob {
  JobId job = 0;
  std::optional<JobSummary> summary = {};  ///< Absent if no client has followed it to its end.
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.summary); }
};
/// Asks for JobRecords: the jobs that the receiver took part in and that have ended.
struct GetJobRecords {};
/// Asks for the receiver's log, from line number `from` on.
struct GetLog {
  std::uint64_t from = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.from); }
};
/// Asks for the result of a flow. The reply is a FlowResult.
struct GetResult {
  JobId job = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job); }
};
/// Asks for the counts of a flow's work. The reply is a FlowReport.
struct GetFlowReport {
  JobId job = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.job); }
};
/// Asks the receiver to hand over the ranges that it owns, and to leave the cluster.
struct LeaveCluster {};
/// Asks the receiver to close its connections to the sender. There is no reply.
struct Disconnect {};
using RequestBody =
    std::variant<SubmitJob, PrepareJob, StartJob, GetStatus, GetJob, ReadRanges, StopJob, CloseJob,
                 PauseJob, GetLog, LeaveCluster, Disconnect, GetJobRecords, GetTrace, GetResult,
                 GetFlowReport, GetJobNotes, EvaluateModel>;

// --- replies ------------------------------------------------------------------------------------

/// The receiver does not do what was requested.
struct Refused {
  std::string why;
  /// True if the only reason is that another job has the same name: the client may try another.
  bool is_name_taken = false;
  static constexpr auto fields(auto& m) { return std::tie(m.why, m.is_name_taken); }
};
/// The receiver has done what was requested.
struct Done {};
/// The reply to PrepareJob.
struct JobPrepared {
  /// A hash of the data. Nodes with different fingerprints cannot train together.
  std::uint64_t fingerprint = 0;
  std::uint32_t ranges = 0;  ///< The number of ranges of the model.
  static constexpr auto fields(auto& m) { return std::tie(m.fingerprint, m.ranges); }
};
/// The reply to SubmitJob: the job has begun.
struct JobStarted {
  /// The job's id. It differs from that in SubmitJob if the job had to be started again.
  JobId job = 0;
  /// The names of the nodes without which it begins: they have died or left meanwhile.
  std::vector<std::string> lost;
  static constexpr auto fields(auto& m) { return std::tie(m.job, m.lost); }
};
/// The draws of one member (actor::Report, which explains the fields).
struct DrawStatus {
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  std::uint64_t times_drawn = 0;
  barrier::TunedSum tuned = {};
  static constexpr auto fields(auto& m) {
    return std::tie(m.draws, m.passes, m.times_drawn, m.tuned);
  }
};
/// The state and progress of one member of a job (actor::MemberReport, which explains the fields).
struct MemberStatus {
  core::MemberId member = 0;
  core::Incarnation incarnation = 0;
  std::uint8_t state = 0;
  std::string why;
  core::Step step = 0;
  std::uint64_t samples = 0;
  std::int64_t waited_ns = 0;
  std::int64_t active_ns = 0;
  double loss_sum = 0;
  std::uint64_t loss_count = 0;
  DrawStatus draws = {};
  core::ReadCounts reads = {};
  /// True if no update of the member's worker is in flight.
  bool is_paused = false;
  /// The number of ranges of which the member holds every acknowledged update.
  std::uint32_t ranges_held = 0;
  core::DealProgress deal = {};
  std::uint64_t updates = 0;
  core::CopyHash copy_hash = {};
  static constexpr auto fields(auto& m) {
    return std::tie(m.member, m.incarnation, m.state, m.why, m.step, m.samples, m.waited_ns,
                    m.active_ns, m.loss_sum, m.loss_count, m.draws, m.reads, m.is_paused,
                    m.ranges_held, m.deal, m.updates, m.copy_hash);
  }
};
/// The updates that one incarnation of a worker has made.
struct WorkerUpdates {
  core::MemberIncarnation worker;
  std::uint64_t updates = 0;
  static constexpr auto fields(auto& m) { return std::tie(m.worker, m.updates); }
};
/// The size of a job's model, and the updates that it has received.
struct JobCounts {
  std::uint32_t ranges = 0;  ///< The number of ranges of the model; 0 if it is not known yet.
  /// The number of updates in the checkpoint from which the job went on; 0 without one.
  std::uint64_t updates_before = 0;
  /// As far as the sender knows, the updates of the workers that are not in
  /// JobStatus::local_members: those on other nodes, and all that are gone. The count of a worker
  /// that is gone has all its updates that the model holds.
  std::vector<WorkerUpdates> other_workers = {};
  static constexpr auto fields(auto& m) {
    return std::tie(m.ranges, m.updates_before, m.other_workers);
  }
};
/// A job, as the sender's node sees it.
struct JobStatus {
  JobId job = 0;
  JobSettings settings;
  /// The members on the sender's node.
  std::vector<MemberStatus> local_members;
  core::ConfigurationPtr configuration;
  /// The job's age, in ms, when a worker on the sender's node last completed a step; 0 if none has.
  std::uint64_t last_step_ms = 0;
  std::string client = {};  ///< The name of the client that submitted the job.
  /// Why the job cannot go on now, and which nodes it waits for; empty if it can.
  std::string blocked_reason = {};
  /// Why this node has given up the job; empty if it has not.
  std::string give_up_reason = {};
  /// The job's state, as far as this node knows: `done` or `stopped` once the workers on this node
  /// are asked to stop.
  JobState state = JobState::running;
  /// The time in ms since the job began or, until it has begun, since it was accepted.
  std::uint64_t age_ms = 0;
  /// The number of steps after which each worker is done; 0 if steps do not end the job.
  core::Step steps_total = 0;
  /// The steps that each worker makes in one pass over the training data; 0 if not known yet.
  core::Step steps_per_data_epoch = 0;
  std::uint64_t time_limit_ms = 0;  ///< The job's time limit in ms; 0 if it has none.
  /// Updates per second of the workers on the sender's node, over the last 5 s.
  double updates_per_s = 0;
  /// The mean loss of the batches over which `updates_per_s` was measured, and their number. If
  /// there were none in these 5 s, both are from the latest 5 s that had some.
  double loss = 0;
  std::uint64_t loss_count = 0;
  JobCounts counts = {};
  static constexpr auto fields(auto& m) {
    return std::tie(m.job, m.settings, m.local_members, m.configuration, m.last_step_ms, m.client,
                    m.blocked_reason, m.give_up_reason, m.age_ms, m.steps_total,
                    m.steps_per_data_epoch, m.time_limit_ms, m.updates_per_s, m.loss, m.loss_count,
                    m.state, m.counts);
  }
};
/// The reply to GetStatus.
struct NodeStatus {
  core::NodeRecord self;
  /// In the order in which the sender has seen them come or go last.
  std::vector<core::NodeRecord> others;
  core::MembershipCounts counts;
  std::vector<JobStatus> jobs;
  /// The nodes among `others` whose certificate was revoked.
  std::vector<core::NodeId> revoked = {};

  static constexpr auto fields(auto& m) {
    return std::tie(m.self, m.others, m.counts, m.jobs, m.revoked);
  }
};
/// A job that was closed, as kept by a node that took part in it.
struct JobRecord {
  JobId job = 0;
  std::string name = {};
  /// The job's model, data, mode and barrier.
  std::string description = {};
  /// The name of the client that submitted the job.
  std::string client = {};
  JobSummary summary = {};
  /// True if `summary` comes from a client that followed the job to its end; false if this node
  /// made it.
  bool is_reported_by_client = false;
  /// When the job began and ended, by the node's clock: ms since 1970, UTC.
  std::int64_t began_at_ms = 0;
  std::int64_t ended_at_ms = 0;
  /// The number of updates in the checkpoint from which the job went on; 0 without one.
  std::uint64_t updates_before = 0;
  /// The updates of all workers, as far as this node knows.
  std::vector<WorkerUpdates> workers = {};
  /// The highest step of a worker on this node.
  core::Step step_max = 0;
  /// As JobStatus::steps_total.
  core::Step steps_total = 0;

  static constexpr auto fields(auto& m) {
    return std::tie(m.job, m.name, m.description, m.client, m.summary, m.is_reported_by_client,
                    m.began_at_ms, m.ended_at_ms, m.updates_before, m.workers, m.step_max,
                    m.steps_total);
  }
};
/// The reply to GetJobRecords.
struct JobRecords {
  std::vector<JobRecord> jobs;
  static constexpr auto fields(auto& m) { return std::tie(m.jobs); }
};
/// The reply to GetJob.
struct JobDescription {
  JobSettings settings;
  /// The number of workers with which the job started.
  std::uint32_t workers = 0;
  core::ConfigurationPtr configuration;
  /// The time since the job started, in ms.
  std::uint64_t age_ms = 0;
  /// The name of the client that submitted the job.
  std::string client = {};
  /// How samples were dealt before the job went on from a checkpoint with other workers.
  std::vector<models::FormerDeal> former_deals = {};
  /// The number of updates in the checkpoint from which the job went on; 0 without one.
  std::uint64_t updates_before = 0;
  /// The latest deal that a member on the sender's node knows; absent if the job deals no samples.
  std::optional<core::Deal> deal = {};
  /// actor::PreparedJob::data_fingerprint() on the sender's node.
  std::uint64_t data_fingerprint = 0;
  /// The sum of the steps with which the job's workers went on from the checkpoint; 0 without one.
  std::uint64_t steps_before = 0;
  static constexpr auto fields(auto& m) {
    return std::tie(m.settings, m.workers, m.configuration, m.age_ms, m.client, m.former_deals,
                    m.updates_before, m.deal, m.data_fingerprint, m.steps_before);
  }
};
struct LogLine {
  /// When the line was logged, by the node's clock: microseconds since 1970, UTC.
  std::int64_t time_us = 0;
  /// The name of the job that the line is about; empty if it is about no job.
  std::string job = {};
  std::string text = {};
  static constexpr auto fields(auto& m) { return std::tie(m.time_us, m.job, m.text); }
};
/// The reply to GetLog.
struct LogLines {
  /// The number of the first of `lines`.
  std::uint64_t from = 0;
  std::vector<LogLine> lines;
  /// The number of the line to ask for next.
  std::uint64_t next = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.from, m.lines, m.next); }
};
using core::FlowReport;
using core::FlowResult;
using ReplyBody = std::variant<Refused, Done, JobPrepared, NodeStatus, JobDescription, Ranges,
                               LogLines, JobStarted, JobRecords, TraceIntervals, FlowResult,
                               FlowReport, JobNotes, ModelMetrics>;

/// The requester chooses `number`; the reply has the same.
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
  /// The node that sent the message; 0 if a client did.
  NodeId from = 0;
  /// The sender's address.
  std::string address;
  std::variant<core::MembershipMessage, Request, Reply> body;
  static constexpr auto fields(auto& m) { return std::tie(m.from, m.address, m.body); }
};

[[nodiscard]] Frame encode(const ControlMessage& message);
[[nodiscard]] Result<ControlMessage> decode_control(const FrameView& frame);

}  // namespace starling::wire
