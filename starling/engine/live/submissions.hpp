/// Jobs that a node was asked to start on all nodes. Internal to the cluster's node.
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

#include "starling/engine/core/configuration.hpp"
#include "starling/engine/core/membership.hpp"
#include "starling/engine/live/plans.hpp"
#include "starling/engine/live/requests.hpp"
#include "starling/engine/live/roles.hpp"

namespace starling::live {

/// On the loop's thread alone.
class Submissions {
 public:
  using Ask = std::function<void(const std::string& address, wire::RequestBody body,
                                 std::chrono::milliseconds within, Requests::OnReply on_reply)>;
  using Answer = std::function<void(const Asker& asker, wire::ReplyBody body)>;

  Submissions(const Plans& plans, Ask ask, Answer answer)
      : plans_(plans), ask_(std::move(ask)), answer_(std::move(answer)) {}

  /// `nodes` are live, and this one is among them. True where it begins now.
  bool submit(const Asker& asker, const wire::SubmitJob& request,
              const std::vector<core::MemberRecord>& nodes) {
    auto& submission = all_[request.job];
    if (submission.outcome) {
      answer_(asker, *submission.outcome);
      return false;
    }
    if (std::ranges::find(submission.askers, asker) == submission.askers.end())
      submission.askers.push_back(asker);
    if (!submission.nodes.empty()) return false;
    for (const auto& node : nodes) {
      submission.nodes.push_back(node.id);
      submission.addresses.push_back(node.address);
    }
    submission.missing = submission.nodes.size();
    submission.prepared.resize(submission.nodes.size());
    for (std::size_t i = 0; i < submission.nodes.size(); ++i)
      ask_(
          submission.addresses[i],
          wire::PrepareJob{request.job, request.settings, static_cast<std::uint32_t>(nodes.size())},
          prepare_within,
          [this, id = request.job, i](auto heard) { on_prepared(id, i, std::move(heard)); });
    return true;
  }

  /// How those of long ago went, whose clients have heard it.
  void forget_older_than(std::chrono::nanoseconds age) {
    const auto now = EventLoop::Clock::now();
    std::erase_if(
        all_, [&](const auto& s) { return s.second.outcome && now > s.second.concluded + age; });
  }

 private:
  using JobId = wire::JobId;
  struct Submission {
    std::vector<Asker> askers;
    std::vector<wire::NodeId> nodes;
    std::vector<std::string> addresses;
    std::size_t missing = 0;
    std::optional<wire::ReplyBody> outcome;
    EventLoop::Clock::time_point concluded{};
    std::vector<wire::JobPrepared> prepared;
  };
  /// Reading data may take long.
  static constexpr std::chrono::minutes prepare_within{5};

  void on_prepared(JobId id, std::size_t i, Result<wire::ReplyBody> heard) {
    auto& submission = all_[id];
    if (submission.outcome) return;
    const std::string place = "node at " + wire::place_of(submission.addresses[i]) + ": ";
    if (!heard) return conclude(id, wire::Refused{place + heard.error().message});
    if (const auto* refused = std::get_if<wire::Refused>(&*heard))
      return conclude(id, wire::Refused{place + refused->why});
    const auto* answer = std::get_if<wire::JobPrepared>(&*heard);
    if (answer == nullptr) return conclude(id, wire::Refused{place + "answered another question"});
    submission.prepared[i] = *answer;
    if (--submission.missing > 0) return;
    std::string others;
    for (std::size_t node = 0; node < submission.prepared.size(); ++node)
      if (submission.prepared[node].fingerprint != submission.prepared.front().fingerprint)
        others += (others.empty() ? "" : ", ") + wire::place_of(submission.addresses[node]);
    if (!others.empty())
      return conclude(id, wire::Refused{"the nodes' data differ: each must read what " +
                                        wire::place_of(submission.addresses.front()) +
                                        " does; not so: " + others});
    start(id);
  }

  void start(JobId id) {
    auto& submission = all_[id];
    const auto plan = plans_.find(id);
    if (!plan) return conclude(id, wire::Refused{"the job was closed meanwhile"});
    const JobOptions& job = plan->options();
    const auto first = std::make_shared<const core::Configuration>(core::first_configuration(
        founders(job.mode, job.workers, owners_wanted(job), submission.nodes),
        submission.prepared.front().ranges, job.copies, core::keeps_steps_centrally(job.mode)));
    submission.missing = submission.nodes.size();
    for (const std::string& address : submission.addresses)
      ask_(address, wire::StartJob{id, first}, std::chrono::seconds{30}, [this, id](auto heard) {
        auto& begun = all_[id];
        if (begun.outcome) return;
        // Who does not answer is dead, and the others go on without it.
        if (const auto* refused = heard ? std::get_if<wire::Refused>(&*heard) : nullptr)
          return conclude(id, *refused);
        if (--begun.missing == 0) conclude(id, wire::Done{});
      });
  }

  void conclude(JobId id, wire::ReplyBody outcome) {
    auto& submission = all_[id];
    submission.outcome = std::move(outcome);
    submission.concluded = EventLoop::Clock::now();
    for (const Asker& asker : submission.askers) answer_(asker, *submission.outcome);
    submission.askers.clear();
    // Nobody needs what was read for it.
    if (std::holds_alternative<wire::Refused>(*submission.outcome))
      for (const std::string& address : submission.addresses)
        ask_(address, wire::CloseJob{id}, std::chrono::seconds{10}, [](const auto&) {});
  }

  const Plans& plans_;
  const Ask ask_;
  const Answer answer_;
  std::map<JobId, Submission> all_;
};

}  // namespace starling::live
