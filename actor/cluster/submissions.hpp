/// Jobs that a node was asked to start on all nodes. Internal to the cluster's node.
///
/// A node that dies or leaves before a job has started is left out, and the others go on. Where
/// they were asked already to start the job, it is started again under a new number, so that no
/// message of the first start's members is taken for one of the second start's.
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
#include "starling/actor/cluster/prepared_jobs.hpp"
#include "starling/actor/cluster/requests.hpp"
#include "starling/actor/cluster/roles.hpp"
#include "starling/base/utc.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/membership/membership.hpp"

namespace starling::actor {

/// On the loop's thread alone.
class Submissions {
 public:
  using Ask = std::function<void(const NodeAddress& target, wire::RequestBody body,
                                 std::chrono::milliseconds timeout, Requests::OnReply on_reply)>;
  using Answer = std::function<void(const Requester& requester, wire::ReplyBody body)>;
  using Log = std::function<void(const std::string& line, const std::string& job)>;
  /// Called with the record of each job that ends before it has begun.
  using OnRefused = std::function<void(wire::JobRecord record)>;
  /// Whether a node is known to be dead, or to have left.
  using IsGone = std::function<bool(wire::NodeId node)>;

  Submissions(const PreparedJobs& prepared_jobs, IsGone is_gone, Ask ask, Answer answer, Log log,
              OnRefused on_refused)
      : prepared_(prepared_jobs),
        is_gone_(std::move(is_gone)),
        ask_(std::move(ask)),
        answer_(std::move(answer)),
        log_(std::move(log)),
        on_refused_(std::move(on_refused)) {}

  /// Answers a requester whose job was submitted before: at once, or when the job has started.
  /// False where the job was not submitted yet.
  bool answer_if_known(const Requester& requester, wire::JobId job) {
    const auto known = all_.find(job);
    if (known == all_.end()) return false;
    if (known->second.outcome)
      answer_(requester, *known->second.outcome);
    else
      known->second.note(requester);
    return true;
  }

  /// Has `nodes` prepare the job; they are live, and this one is the first of them. Requires: the
  /// job was not submitted before.
  void submit(const Requester& requester, const wire::SubmitJob& request, const std::string& client,
              const std::vector<core::NodeRecord>& nodes) {
    Submission& submission = all_[request.job];
    submission.run = request.job;
    submission.settings = request.settings;
    submission.client = client;
    submission.since_ms = utc_now_us() / 1000;
    submission.note(requester);
    for (const auto& node : nodes)
      submission.nodes.push_back({{node.id, node.address}, node.name, std::nullopt, false});
    const auto count = static_cast<std::uint32_t>(nodes.size());
    for (const auto& node : nodes)
      ask_({node.id, node.address}, wire::PrepareJob{request.job, request.settings, count, client},
           prepare_within,
           [this, id = request.job, target = NodeAddress{node.id, node.address}](auto reply) {
             on_prepared(id, target, std::move(reply));
           });
  }

  /// The number of submissions that have neither begun nor been refused.
  [[nodiscard]] std::size_t open_count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(all_, [](const auto& one) { return !one.second.outcome; }));
  }

  /// Leaves out nodes that are gone. To be called several times a second.
  void look_for_losses() {
    std::vector<JobId> open;
    for (const auto& [id, submission] : all_)
      if (!submission.outcome) open.push_back(id);
    for (const JobId id : open) leave_out_the_gone(id);
  }

  /// Ends a submission whose job is not wanted any more.
  void close(wire::JobId job) {
    const auto known = all_.find(job);
    if (known != all_.end() && !known->second.outcome)
      conclude(job, wire::Refused{"the job was closed meanwhile"}, wire::JobState::stopped);
  }

  /// Forgets submissions that were concluded more than `age` ago and, beyond `outcomes_max`
  /// submissions, all concluded ones.
  void forget_older_than(std::chrono::nanoseconds age) {
    const auto now = EventLoop::Clock::now();
    std::erase_if(
        all_, [&](const auto& s) { return s.second.outcome && now > s.second.concluded + age; });
    if (all_.size() > outcomes_max)
      std::erase_if(all_, [](const auto& s) { return s.second.outcome.has_value(); });
  }

 private:
  using JobId = wire::JobId;
  struct Participant {
    NodeAddress target;
    std::string name;
    std::optional<wire::JobPrepared> prepared;
    bool has_begun = false;
  };
  struct Submission {
    wire::JobSettings settings;
    std::string client;
    /// When it was submitted: ms since 1970, UTC.
    std::int64_t since_ms = 0;
    /// The addresses of the job's requesters, each with the number of its latest request.
    std::map<std::string, std::uint64_t> requesters;
    std::vector<Participant> nodes;
    std::vector<std::string> lost;
    /// Set from the first start on.
    std::shared_ptr<const PreparedJob> prepared_job;
    /// The job's number since its latest start, and its earlier ones.
    JobId run = 0;
    std::vector<JobId> previous_ids;
    std::optional<wire::ReplyBody> outcome;
    EventLoop::Clock::time_point concluded{};

    void note(const Requester& requester) { requesters[requester.address] = requester.number; }
    Participant* find(wire::NodeId node) {
      const auto found =
          std::ranges::find(nodes, node, [](const auto& n) { return n.target.node; });
      return found == nodes.end() ? nullptr : &*found;
    }
  };
  /// Beyond it, all concluded submissions are forgotten: a client that asks again counts as new.
  static constexpr std::size_t outcomes_max = 4096;
  /// Reading data may take long.
  static constexpr std::chrono::minutes prepare_within{5};
  static constexpr std::chrono::seconds start_within{30};
  static constexpr std::chrono::seconds close_within{10};

  /// nullptr where it is open no more.
  Submission* open_one(JobId id) {
    const auto found = all_.find(id);
    return found == all_.end() || found->second.outcome ? nullptr : &found->second;
  }

  void on_prepared(JobId id, const NodeAddress& target, Result<wire::ReplyBody> reply) {
    Submission* submission = open_one(id);
    if (submission == nullptr && was_refused(id) && reply &&
        std::holds_alternative<wire::JobPrepared>(*reply))
      // The node received CloseJob before it had prepared the job.
      ask_(target, wire::CloseJob{id}, close_within, [](const auto&) {});
    const wire::NodeId node = target.node;
    Participant* at = submission == nullptr ? nullptr : submission->find(node);
    if (at == nullptr) return;
    if (!reply && is_gone_(node)) return leave_out_the_gone(id);
    const std::string place = "node at " + wire::place_of(at->target.address) + ": ";
    if (!reply) return conclude(id, wire::Refused{place + reply.error().message});
    if (const auto* refused = std::get_if<wire::Refused>(&*reply))
      return conclude(id, wire::Refused{place + refused->why, refused->is_name_taken});
    const auto* answer = std::get_if<wire::JobPrepared>(&*reply);
    if (answer == nullptr) return conclude(id, wire::Refused{place + "answered another question"});
    at->prepared = *answer;
    start_where_prepared(id);
  }

  void leave_out_the_gone(JobId id) {
    Submission* submission = open_one(id);
    if (submission == nullptr) return;
    std::vector<std::string> lost;
    std::erase_if(submission->nodes, [&](const Participant& node) {
      if (!is_gone_(node.target.node)) return false;
      lost.push_back(node.name);
      return true;
    });
    if (lost.empty()) return;
    for (const std::string& name : lost) {
      log_("node " + name + " is gone before the job has begun; the others go on without it",
           name_of(submission->settings, id));
      submission->lost.push_back(name);
    }
    start_where_prepared(id);
  }

  void start_where_prepared(JobId id) {
    const Submission& submission = all_.at(id);
    const auto is_prepared = [](const Participant& node) { return node.prepared.has_value(); };
    if (submission.nodes.empty() || !std::ranges::all_of(submission.nodes, is_prepared)) return;
    const Participant& first = submission.nodes.front();
    std::string others;
    for (const Participant& node : submission.nodes)
      if (node.prepared->fingerprint != first.prepared->fingerprint)
        others += (others.empty() ? "" : ", ") + wire::place_of(node.target.address);
    if (!others.empty())
      return conclude(
          id, wire::Refused{"the nodes' data differ: each must read what " +
                            wire::place_of(first.target.address) + " does; not so: " + others});
    start(id);
  }

  void start(JobId id) {
    Submission& submission = all_.at(id);
    if (submission.prepared_job) {
      submission.previous_ids.push_back(submission.run);
      submission.run = wire::draw_id();
    } else {
      submission.prepared_job = prepared_.find(id);
    }
    if (!submission.prepared_job)
      return conclude(id, wire::Refused{"the job was closed meanwhile"});
    const JobOptions& job = submission.prepared_job->options();
    std::vector<wire::NodeId> nodes;
    for (Participant& node : submission.nodes) {
      node.has_begun = false;
      nodes.push_back(node.target.node);
    }
    const auto initial = std::make_shared<const core::Configuration>(
        core::first_configuration(founders(job.mode, job.workers, owners_wanted(job), nodes),
                                  submission.nodes.front().prepared->ranges, job.copies,
                                  core::keeps_steps_centrally(job.mode)));
    const JobId run = submission.run;
    const wire::StartJob request{run, initial, submission.previous_ids};
    for (const Participant& node : std::vector<Participant>{submission.nodes})
      ask_(node.target, request, start_within,
           [this, id, run, at = node.target.node](auto reply) { on_begun(id, run, at, reply); });
  }

  void on_begun(JobId id, JobId run, wire::NodeId node, const Result<wire::ReplyBody>& reply) {
    Submission* submission = open_one(id);
    Participant* at = submission == nullptr ? nullptr : submission->find(node);
    if (at == nullptr || submission->run != run) return;
    if (!reply && is_gone_(node)) return leave_out_the_gone(id);
    if (const auto* refused = reply ? std::get_if<wire::Refused>(&*reply) : nullptr)
      return conclude(id, *refused);
    if (!reply)
      return conclude(id, wire::Refused{"node at " + wire::place_of(at->target.address) + ": " +
                                        reply.error().message});
    at->has_begun = true;
    if (std::ranges::all_of(submission->nodes, &Participant::has_begun))
      conclude(id, wire::JobBegun{run, submission->lost});
  }

  static wire::JobRecord record_of(JobId id, const Submission& submission,
                                   wire::JobSummary summary) {
    wire::JobRecord record;
    record.job = id;
    record.name = name_of(submission.settings, id);
    record.description = summary_of(submission.settings);
    record.client = submission.client;
    record.summary = std::move(summary);
    record.began_ms = submission.since_ms;
    record.ended_ms = utc_now_us() / 1000;
    return record;
  }

  [[nodiscard]] bool was_refused(JobId id) const {
    const auto found = all_.find(id);
    return found != all_.end() && found->second.outcome &&
           std::holds_alternative<wire::Refused>(*found->second.outcome);
  }

  /// Ends a submission with `outcome`. `state` is the job's recorded state where it is refused.
  void conclude(JobId id, wire::ReplyBody outcome, wire::JobState state = wire::JobState::failed) {
    Submission& submission = all_.at(id);
    // A job that only needs another name has not failed.
    if (const auto* refused = std::get_if<wire::Refused>(&outcome);
        refused != nullptr && !refused->is_name_taken)
      on_refused_(record_of(id, submission, {state, "before it began: " + refused->why}));
    submission.outcome = std::move(outcome);
    submission.concluded = EventLoop::Clock::now();
    for (const auto& [address, number] : submission.requesters)
      answer_({address, number}, *submission.outcome);
    const auto nodes = std::exchange(submission.nodes, {});
    submission.requesters.clear();
    submission.prepared_job = nullptr;
    // Nobody needs the data that was read for a refused job.
    if (std::holds_alternative<wire::Refused>(*submission.outcome))
      for (const Participant& node : nodes)
        for (const JobId closing : {id, submission.run})
          ask_(node.target, wire::CloseJob{closing}, close_within, [](const auto&) {});
  }

  const PreparedJobs& prepared_;
  const IsGone is_gone_;
  const Ask ask_;
  const Answer answer_;
  const Log log_;
  const OnRefused on_refused_;
  std::map<JobId, Submission> all_;
};

}  // namespace starling::actor
