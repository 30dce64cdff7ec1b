/// What nodes, and those who use them, say to one another beside the packets of jobs: membership,
/// and requests with their replies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/actor/wire/frame.hpp"
#include "starling/engine/core/configuration.hpp"
#include "starling/engine/core/membership_message.hpp"

namespace starling::wire {

/// Keys and values as in a job file.
using JobSettings = std::vector<std::pair<std::string, std::string>>;

/// How a job stands, or has ended.
enum class JobState : std::uint8_t { preparing, running, done, stopped, failed };

/// How whoever followed a job to its end says that it went.
struct JobSummary {
  JobState state = JobState::done;
  /// Why it has failed or was stopped; empty where there is nothing to say.
  std::string why = {};
  /// By name, as `submit --json` prints them.
  std::vector<std::pair<std::string, double>> figures = {};
};

// --- requests -----------------------------------------------------------------------------------
// Each may be repeated without harm.

/// Start a job on all nodes. The client draws its name.
struct SubmitJob {
  JobId job = 0;
  JobSettings settings;
};
/// Make ready for a job on so many nodes: read its data.
struct PrepareJob {
  JobId job = 0;
  JobSettings settings;
  std::uint32_t nodes = 1;
  /// Who has submitted it, as the node that was asked knows it.
  std::string client = {};
};
/// Found a prepared job with these members, some of whom are yours.
struct StartJob {
  JobId job = 0;
  core::ConfigurationPtr first;
  /// Numbers under which it was prepared, or started with members that have died since: those jobs
  /// end, and what was read for them is this one's.
  std::vector<JobId> former = {};
};
/// What do you know, run, and how far is it?
struct AskStatus {};
/// What is needed to join a job.
struct AskJob {
  JobId job = 0;
};
/// Ranges that members with you are primary of, from number `from` on; as many as one reply holds.
struct ReadRanges {
  JobId job = 0;
  core::RangeId from = 0;
  /// All that a job can go on from, instead of the values alone.
  bool whole = false;
};
/// For so long from now workers begin no update, so that the model can be read as it stands between
/// two of each; 0: they go on.
struct PauseJob {
  JobId job = 0;
  std::uint32_t milliseconds = 0;
};
/// Workers end at the end of their step.
struct StopJob {
  JobId job = 0;
  /// It has reached what it was to reach, and is not cut short.
  bool is_done = false;
};
/// Nobody needs the job's model any more.
struct CloseJob {
  JobId job = 0;
  /// Absent where nobody has followed it to its end.
  std::optional<JobSummary> summary = {};
};
/// Which jobs that you took part in have ended?
struct AskJobs {};
/// What you have said to people, from line number `from` on.
struct AskLog {
  std::uint64_t from = 0;
};
/// Hand over what you own, and go.
struct LeaveCluster {};
/// I have asked you all I wanted: close what you keep open to answer me. There is no reply.
struct Farewell {};
using RequestBody =
    std::variant<SubmitJob, PrepareJob, StartJob, AskStatus, AskJob, ReadRanges, StopJob, CloseJob,
                 PauseJob, AskLog, LeaveCluster, Farewell, AskJobs>;

// --- replies ------------------------------------------------------------------------------------

struct Refused {
  std::string why;
  /// Another name would do.
  bool is_name_taken = false;
};
struct Done {};
struct JobPrepared {
  /// Of the data: nodes that differ cannot train together.
  std::uint64_t fingerprint = 0;
  std::uint32_t ranges = 0;
};
/// A job that was submitted has begun.
struct JobBegun {
  /// Its number, which is another than the client's where it had to be started anew.
  JobId job = 0;
  /// Names of nodes that have died or left since it was submitted: it begins without them.
  std::vector<std::string> lost;
};
/// How one member of a job stands; see actor::MemberReport.
struct MemberStatus {
  core::MemberId member = 0;
  core::Incarnation incarnation = 0;
  std::uint8_t state = 0;
  std::string why;
  core::Step step = 0;
  std::uint64_t samples = 0;
  std::int64_t waited_ns = 0;
  double loss_sum = 0;
  std::uint64_t losses = 0;
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  std::uint64_t drawn = 0;
  /// No update of its worker is in flight.
  bool is_paused = false;
  /// Ranges of which it holds all that was acknowledged.
  std::uint32_t held = 0;
};
struct JobStatus {
  JobId job = 0;
  JobSettings settings;
  std::vector<MemberStatus> here;
  core::ConfigurationPtr configuration;
  /// How long the job's workers have worked, as far as those here know; 0 where there are none.
  std::uint64_t worked_ms = 0;
  /// Who has submitted it.
  std::string client = {};
  /// Why it cannot go on now, and whom it waits for; empty where it can.
  std::string hindrance = {};
  /// Why it was given up; empty where it was not.
  std::string failure = {};
  /// As far as this node says so itself: `done` and `stopped` are what its workers were told to
  /// become.
  JobState state = JobState::running;
  /// When it began, or where it has not when it was taken, by this node's clock: ms since 1970,
  /// UTC.
  std::int64_t since_ms = 0;
  /// All steps of each worker; 0 where only something else ends it.
  core::Step steps_total = 0;
  /// Steps of each worker in a pass over the training data; 0 where nobody knows yet.
  core::Step steps_in_epoch = 0;
  /// 0 where no time ends it.
  std::uint64_t time_max_ms = 0;
  /// The workers here, in the last seconds.
  double updates_per_s = 0;
  /// Mean of the batches of the workers here in the last seconds in which there were any, and of
  /// how many.
  double loss = 0;
  std::uint64_t losses = 0;
};
struct NodeStatus {
  core::NodeRecord self;
  std::vector<core::NodeRecord> others;
  core::MembershipCounts counts;
  std::vector<JobStatus> jobs;
  /// Nodes whose certificate was revoked, among the others.
  std::vector<core::NodeId> revoked = {};
};
/// A job that has ended and was closed, as a node that took part in it keeps it.
struct JobRecord {
  JobId job = 0;
  std::string name = {};
  /// Its model, data, mode and barrier.
  std::string what = {};
  /// Who has submitted it.
  std::string client = {};
  JobSummary summary = {};
  /// A follower that saw its end has said so.
  bool is_told = false;
  /// By the node's clock: ms since 1970, UTC.
  std::int64_t began_ms = 0;
  std::int64_t ended_ms = 0;
  /// The sum over the workers on this node.
  std::uint64_t updates = 0;
  core::Step step_max = 0;
  core::Step steps_total = 0;
};
struct JobRecords {
  std::vector<JobRecord> jobs;
};
struct JobFacts {
  JobSettings settings;
  /// Of the founders.
  std::uint32_t workers = 0;
  core::ConfigurationPtr configuration;
  /// Since it was founded.
  std::uint64_t age_ms = 0;
  /// Who has submitted it.
  std::string client = {};
};
struct Ranges {
  std::vector<core::RangeState> states;
  /// Ask again from here; 0: there are no more.
  core::RangeId next = 0;
};
struct LogLine {
  /// By the node's clock: microseconds since 1970, UTC.
  std::int64_t time_us = 0;
  /// The name of the job that it is about; empty where it is about none.
  std::string job = {};
  std::string text = {};
};
struct LogLines {
  /// The number of the first.
  std::uint64_t from = 0;
  std::vector<LogLine> lines;
  /// Ask again from here.
  std::uint64_t next = 0;
};
using ReplyBody = std::variant<Refused, Done, JobPrepared, NodeStatus, JobFacts, Ranges, LogLines,
                               JobBegun, JobRecords>;

/// `number` is the requester's, and comes back with the reply.
struct Request {
  std::uint64_t number = 0;
  RequestBody body;
};
struct Reply {
  std::uint64_t number = 0;
  ReplyBody body;
};

struct ControlMessage {
  /// 0 where the sender is no node.
  NodeId from = 0;
  /// Where it is reached.
  std::string address;
  std::variant<core::MembershipMessage, Request, Reply> body;
};

[[nodiscard]] Frame encode(const ControlMessage& message);
[[nodiscard]] Result<ControlMessage> decode_control(const FrameView& frame);

}  // namespace starling::wire
