/// The jobs that clients submitted to this node. The node asks all nodes to prepare each job, and
/// then to start it. Internal to ClusterNode.
///
/// If another node dies or leaves before a job has started, the job starts without it. If the nodes
/// were already asked to start the job, they are asked to start it again with a new id, so that no
/// member takes a message of the first start for one of the second. If this node refuses because it
/// is leaving, the job fails.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "starling/actor/cluster/job_name.hpp"
#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/cluster/member_placement.hpp"
#include "starling/actor/cluster/prepared_jobs.hpp"
#include "starling/actor/cluster/requests.hpp"
#include "starling/base/utc.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/membership/membership.hpp"

namespace starling::actor {

/// The reason for which a node that is leaving refuses to prepare or start a job. The node to which
/// the job was submitted knows the refusal by this text, and starts the job without the leaving
/// node.
inline constexpr const char* leaving_reason = "this node is leaving";
/// The reason for which a node refuses to prepare or start a job that its client has closed. The
/// node to which the job was submitted knows the refusal by this text, even if the client's request
/// to close the job has not reached it yet.
inline constexpr const char* closed_reason = "the job is closed";

/// Call only on the loop's thread.
class Submissions {
 public:
  using SendRequest =
      std::function<void(const NodeAddress& target, wire::RequestBody body,
                         std::chrono::milliseconds timeout, Requests::OnReply on_reply)>;
  using Answer = std::function<void(const Requester& requester, wire::ReplyBody body)>;
  using Log = std::function<void(const std::string& line, const std::string& job)>;
  /// Called with the record of each job that fails, or is closed, before it has begun. Not called
  /// if only its name is taken: its client can then submit the job again with another name.
  using OnRefused = std::function<void(wire::JobRecord record)>;
  /// True if a node has left or has died.
  using IsGone = std::function<bool(wire::NodeId node)>;

  Submissions(const PreparedJobs& prepared_jobs, IsGone is_gone, SendRequest send_request,
              Answer answer, Log log, OnRefused on_refused)
      : prepared_(prepared_jobs),
        is_gone_(std::move(is_gone)),
        send_request_(std::move(send_request)),
        answer_(std::move(answer)),
        log_(std::move(log)),
        on_refused_(std::move(on_refused)) {}

  /// If the job was submitted before, answers the requester and returns true; else returns false.
  /// The answer is sent at once if the outcome is known, otherwise when the job has started or has
  /// failed.
  bool answer_if_known(const Requester& requester, wire::JobId job) {
    const auto known = submissions_.find(job);
    if (known == submissions_.end()) return false;
    if (known->second.outcome)
      answer_(requester, *known->second.outcome);
    else
      known->second.add_requester(requester);
    return true;
  }

  /// Asks `nodes`, which are all live nodes, this one first, to prepare the job. Answers the
  /// requester when the job has started or has failed. Requires: the job was not submitted before.
  void submit(const Requester& requester, const wire::SubmitJob& request, const std::string& client,
              const std::vector<core::NodeRecord>& nodes) {
    Submission& submission = submissions_[request.job];
    submission.current_id = request.job;
    submission.settings = request.settings;
    submission.client = client;
    submission.submitted_at_ms = utc_now_us() / 1000;
    submission.add_requester(requester);
    for (const auto& node : nodes)
      submission.nodes.push_back({{node.id, node.address}, node.name, std::nullopt, false});
    const auto count = static_cast<std::uint32_t>(nodes.size());
    for (const auto& node : nodes)
      send_request_({node.id, node.address},
                    wire::PrepareJob{request.job, request.settings, count, client}, prepare_timeout,
                    [this, id = request.job, target = NodeAddress{node.id, node.address}](
                        auto reply) { on_prepared(id, target, std::move(reply)); });
  }

  /// The number of jobs that have neither started nor failed yet.
  [[nodiscard]] std::size_t open_count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        submissions_, [](const auto& entry) { return !entry.second.outcome; }));
  }

  /// Removes the nodes that are gone from all open submissions, which go on without them. The
  /// caller must call this several times a second.
  void remove_gone_nodes() {
    std::vector<JobId> open;
    for (const auto& [id, submission] : submissions_)
      if (!submission.outcome) open.push_back(id);
    for (const JobId id : open) remove_gone_nodes_of(id);
  }

  /// Fails the submission of a job that was closed before it started.
  void close(wire::JobId job) {
    const auto known = submissions_.find(job);
    if (known != submissions_.end() && !known->second.outcome) conclude_closed(job);
  }

  /// Forgets submissions that were concluded more than `age` ago; forgets all concluded ones if
  /// there are more than `submissions_max` in all.
  void forget_older_than(std::chrono::nanoseconds age) {
    const auto now = EventLoop::Clock::now();
    std::erase_if(submissions_, [&](const auto& entry) {
      return entry.second.outcome && now > entry.second.concluded_at + age;
    });
    if (submissions_.size() > submissions_max)
      std::erase_if(submissions_,
                    [](const auto& entry) { return entry.second.outcome.has_value(); });
  }

 private:
  using JobId = wire::JobId;
  /// A node that is to run the job.
  struct Participant {
    NodeAddress target;
    std::string name;
    /// The node's reply to PrepareJob, once it has arrived.
    std::optional<wire::JobPrepared> prepared;
    /// True if the node has answered the latest StartJob.
    bool has_started = false;
  };
  struct Submission {
    /// Empty once the submission is concluded, because many concluded submissions are remembered.
    wire::JobSettings settings;
    std::string client;
    /// In ms since 1970, UTC.
    std::int64_t submitted_at_ms = 0;
    /// The clients that wait for the outcome: by address, the number of a client's latest request.
    std::map<std::string, std::uint64_t> requesters;
    std::vector<Participant> nodes;
    /// The names of the nodes that the job starts without.
    std::vector<std::string> lost_nodes;
    /// This node's prepared job, from the first start until the conclusion; null before and after.
    std::shared_ptr<const PreparedJob> prepared_job;
    /// The job's id in its latest start (before the first start, the id with which it was
    /// submitted), and its ids in earlier starts.
    JobId current_id = 0;
    std::vector<JobId> previous_ids;
    /// The answer to the requesters, once it is known.
    std::optional<wire::ReplyBody> outcome;
    EventLoop::Clock::time_point concluded_at{};

    void add_requester(const Requester& requester) {
      requesters[requester.address] = requester.number;
    }
    Participant* find(wire::NodeId node) {
      const auto found =
          std::ranges::find(nodes, node, [](const auto& other) { return other.target.node; });
      return found == nodes.end() ? nullptr : &*found;
    }
  };
  /// The most submissions that are remembered. A client that repeats the request of a forgotten
  /// submission submits its job anew.
  static constexpr std::size_t submissions_max = 4096;
  /// How long this node waits for the answer to each request. Reading data may take long.
  static constexpr std::chrono::minutes prepare_timeout{5};
  static constexpr std::chrono::seconds start_timeout{30};
  static constexpr std::chrono::seconds close_timeout{10};

  /// Returns the submission, or nullptr if it is unknown or concluded.
  Submission* find_open(JobId id) {
    const auto found = submissions_.find(id);
    return found == submissions_.end() || found->second.outcome ? nullptr : &found->second;
  }

  void on_prepared(JobId id, const NodeAddress& target, Result<wire::ReplyBody> reply) {
    Submission* submission = find_open(id);
    if (submission == nullptr && was_refused(id) && reply &&
        std::holds_alternative<wire::JobPrepared>(*reply))
      // The node got CloseJob while it was still preparing the job.
      send_request_(target, wire::CloseJob{id}, close_timeout, [](const auto&) {});
    const wire::NodeId node = target.node;
    Participant* participant = submission == nullptr ? nullptr : submission->find(node);
    if (participant == nullptr) return;
    if (!reply && is_gone_(node)) return remove_gone_nodes_of(id);
    if (must_go_on_without(*submission, node, reply)) return remove_leaving_node(id, node);
    const std::string prefix = "node at " + wire::without_key(participant->target.address) + ": ";
    if (!reply) return conclude(id, wire::Refused{prefix + reply.error().message});
    const auto* refused = std::get_if<wire::Refused>(&*reply);
    if (refused != nullptr && refused->why == closed_reason) return conclude_closed(id);
    if (refused != nullptr)
      return conclude(id, wire::Refused{prefix + refused->why, refused->is_name_taken});
    const auto* prepared = std::get_if<wire::JobPrepared>(&*reply);
    if (prepared == nullptr)
      return conclude(id, wire::Refused{prefix + "its reply does not match the request"});
    participant->prepared = *prepared;
    start_if_all_prepared(id);
  }

  /// True if `node` has refused because it is leaving, so that the other nodes go on without it.
  /// False if `node` is this node, the first one of the submission: a job fails if the node to
  /// which it was submitted leaves.
  static bool must_go_on_without(const Submission& submission, wire::NodeId node,
                                 const Result<wire::ReplyBody>& reply) {
    const auto* refused = reply ? std::get_if<wire::Refused>(&*reply) : nullptr;
    return refused != nullptr && refused->why == leaving_reason &&
           node != submission.nodes.front().target.node;
  }

  void remove_gone_nodes_of(JobId id) {
    remove_nodes(id, "gone", [this](wire::NodeId node) { return is_gone_(node); });
  }
  void remove_leaving_node(JobId id, wire::NodeId leaving) {
    remove_nodes(id, "leaving", [leaving](wire::NodeId node) { return node == leaving; });
  }
  /// If the submission is open, removes the nodes for which `is_lost(node)` is true from it and
  /// goes on without them. `state`, "gone" or "leaving", describes these nodes in the log.
  template <class IsLost>
  void remove_nodes(JobId id, const std::string& state, IsLost is_lost) {
    Submission* submission = find_open(id);
    if (submission == nullptr) return;
    std::vector<std::string> lost;
    std::erase_if(submission->nodes, [&](const Participant& node) {
      if (!is_lost(node.target.node)) return false;
      lost.push_back(node.name);
      return true;
    });
    if (lost.empty()) return;
    for (const std::string& name : lost) {
      log_("node " + name + " is " + state +
               " before the job has begun; the others go on without it",
           name_of(submission->settings, id));
      submission->lost_nodes.push_back(name);
    }
    start_if_all_prepared(id);
  }

  void start_if_all_prepared(JobId id) {
    const Submission& submission = submissions_.at(id);
    const auto is_prepared = [](const Participant& node) { return node.prepared.has_value(); };
    if (submission.nodes.empty() || !std::ranges::all_of(submission.nodes, is_prepared)) return;
    const Participant& first = submission.nodes.front();
    std::string differing;
    for (const Participant& node : submission.nodes)
      if (node.prepared->fingerprint != first.prepared->fingerprint)
        differing += (differing.empty() ? "" : ", ") + wire::without_key(node.target.address);
    if (!differing.empty())
      return conclude(
          id, wire::Refused{
                  "the nodes differ: each must run the same program and read the same data as " +
                  wire::without_key(first.target.address) + "; these do not: " + differing});
    start(id);
  }

  void start(JobId id) {
    Submission& submission = submissions_.at(id);
    if (submission.prepared_job) {
      submission.previous_ids.push_back(submission.current_id);
      submission.current_id = wire::draw_id();
    } else {
      submission.prepared_job = prepared_.find(id);
    }
    if (!submission.prepared_job) return conclude_closed(id);
    const JobOptions& job = submission.prepared_job->options();
    std::vector<wire::NodeId> nodes;
    for (Participant& node : submission.nodes) {
      node.has_started = false;
      nodes.push_back(node.target.node);
    }
    auto members = initial_members(job.mode, job.workers, requested_owner_count(job), nodes);
    if (members.size() > LocalJobOptions::members_max)
      return conclude(id, wire::Refused{"the job would have " + std::to_string(members.size()) +
                                        " members (workers, servers and a coordinator); valid: " +
                                        "up to " + std::to_string(LocalJobOptions::members_max)});
    const auto initial = std::make_shared<const core::Configuration>(core::first_configuration(
        std::move(members), placed_ranges(job, submission.nodes.front().prepared->ranges),
        job.replication_factor, core::keeps_steps_centrally(job.mode)));
    const JobId started_id = submission.current_id;
    const wire::StartJob request{started_id, initial, submission.previous_ids};
    for (const Participant& participant : std::vector<Participant>{submission.nodes})
      send_request_(participant.target, request, start_timeout,
                    [this, id, started_id, node = participant.target.node](auto reply) {
                      on_started(id, started_id, node, reply);
                    });
  }

  void on_started(JobId id, JobId started_id, wire::NodeId node,
                  const Result<wire::ReplyBody>& reply) {
    Submission* submission = find_open(id);
    Participant* participant = submission == nullptr ? nullptr : submission->find(node);
    if (participant == nullptr || submission->current_id != started_id) return;
    if (!reply && is_gone_(node)) return remove_gone_nodes_of(id);
    if (must_go_on_without(*submission, node, reply)) return remove_leaving_node(id, node);
    const std::string prefix = "node at " + wire::without_key(participant->target.address) + ": ";
    if (!reply) return conclude(id, wire::Refused{prefix + reply.error().message});
    const auto* refused = std::get_if<wire::Refused>(&*reply);
    if (refused != nullptr && refused->why == closed_reason) return conclude_closed(id);
    if (refused != nullptr)
      return conclude(id, wire::Refused{prefix + refused->why, refused->is_name_taken});
    participant->has_started = true;
    if (std::ranges::all_of(submission->nodes, &Participant::has_started))
      conclude(id, wire::JobStarted{started_id, submission->lost_nodes});
  }

  static wire::JobRecord record_of(JobId id, const Submission& submission,
                                   wire::JobSummary summary) {
    wire::JobRecord record;
    record.job = id;
    record.name = name_of(submission.settings, id);
    record.description = summary_of(submission.settings);
    record.client = submission.client;
    record.summary = std::move(summary);
    record.began_at_ms = submission.submitted_at_ms;
    record.ended_at_ms = utc_now_us() / 1000;
    return record;
  }

  [[nodiscard]] bool was_refused(JobId id) const {
    const auto found = submissions_.find(id);
    return found != submissions_.end() && found->second.outcome &&
           std::holds_alternative<wire::Refused>(*found->second.outcome);
  }

  /// Ends the submission of a job that its client has closed before it began.
  void conclude_closed(JobId id) {
    conclude(id, wire::Refused{"the job was closed meanwhile"}, wire::JobState::stopped);
  }

  /// Ends a submission: answers its requesters with `outcome`. If `outcome` is a refusal, records
  /// the job with the state `state`.
  void conclude(JobId id, wire::ReplyBody outcome, wire::JobState state = wire::JobState::failed) {
    Submission& submission = submissions_.at(id);
    // A job that only needs another name has not failed: its client submits it again.
    if (const auto* refused = std::get_if<wire::Refused>(&outcome);
        refused != nullptr && !refused->is_name_taken) {
      const std::string why = "before it began: " + refused->why;
      log_((state == wire::JobState::stopped ? "ended: stopped: " : "ended: failed: ") + why,
           name_of(submission.settings, id));
      on_refused_(record_of(id, submission, {state, why}));
    }
    submission.outcome = std::move(outcome);
    submission.concluded_at = EventLoop::Clock::now();
    for (const auto& [address, number] : submission.requesters)
      answer_({address, number}, *submission.outcome);
    const auto nodes = std::exchange(submission.nodes, {});
    submission.requesters.clear();
    submission.settings = {};
    submission.prepared_job = nullptr;
    // Lets the nodes discard the data that they have read for a refused job.
    if (std::holds_alternative<wire::Refused>(*submission.outcome))
      for (const Participant& node : nodes)
        for (const JobId refused_id : {id, submission.current_id})
          send_request_(node.target, wire::CloseJob{refused_id}, close_timeout, [](const auto&) {});
  }

  const PreparedJobs& prepared_;
  const IsGone is_gone_;
  const SendRequest send_request_;
  const Answer answer_;
  const Log log_;
  const OnRefused on_refused_;
  std::map<JobId, Submission> submissions_;
};

}  // namespace starling::actor
