#include "starling/tools/cluster/follow/follower.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "starling/actor/cluster/local_job.hpp"
#include "starling/actor/types.hpp"
#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/core/member/message_validator.hpp"
#include "starling/tools/program/interrupt.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

constexpr auto ask_silent_after = 5s;
/// All nodes count as silent after this time, which is longer than one busy node is silent.
constexpr auto silence_told_after = 3s;
/// The job counts as dropped after this time, while nodes answer and none of them has it.
constexpr auto dropped_after = 3s;
/// In ms, about 35 years: longer than any job has run.
constexpr std::uint64_t worked_max = std::uint64_t{1} << 40U;

bool is_done(const wire::MemberStatus& member) {
  return member.state == static_cast<std::uint8_t>(actor::MemberReport::State::done);
}

}  // namespace

Result<JobNews> Follower::look() {
  heard_now_.clear();
  is_known_ = false;
  reported_epoch_ = 0;
  blocked_reason_.clear();
  give_up_reason_.clear();
  const auto asked = addresses_to_ask();
  const auto replies = client_.ask_all(asked, wire::GetStatus{}, answer_within);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto* status = replies[i] ? std::get_if<wire::NodeStatus>(&*replies[i]) : nullptr;
    if (status != nullptr)
      receive(asked[i], *status);
    else
      silent_[asked[i]] = Clock::now();
  }
  const auto members = configuration_ ? member_nodes() : heard_now_;
  const bool is_gone = !is_known_ && std::ranges::any_of(members, [&](wire::NodeId node) {
    return heard_now_.contains(node);
  });
  if (!is_gone) had_ = Clock::now();
  is_dropped_ = Clock::now() > had_ + dropped_after;
  if (is_dropped_) return Error{"the job was dropped: no node has it any more"};
  if (Clock::now() > heard_ + patience_)
    return Error{"no node of the job has answered for " +
                 std::to_string(patience_ / std::chrono::seconds{1}) + " s (--wait-for-nodes)"};
  return news();
}

std::vector<std::string> Follower::addresses_to_ask() const {
  std::vector<std::string> all;
  for (const std::string& address : addresses_) {
    const auto silent = silent_.find(address);
    // A silent node does not delay every look.
    if (silent == silent_.end() || addresses_.size() == 1 ||
        Clock::now() >= silent->second + ask_silent_after)
      all.push_back(address);
  }
  return all;
}

void Follower::receive(const std::string& address, const wire::NodeStatus& status) {
  heard_ = Clock::now();
  silent_.erase(address);
  nodes_[status.self.id] = address;
  heard_now_.insert(status.self.id);
  for (const auto& other : status.others) receive(other);
  records_[status.self.id] = status.self;
  for (const auto& other : status.others)
    if (!core::is_live(other.state)) addresses_.erase(other.address);
  // Comes last, for another node may live at a dead node's address now.
  addresses_.insert(address);
  for (const auto& other : status.others)
    if (core::is_live(other.state)) addresses_.insert(other.address);
  for (const auto& job : status.jobs)
    if (job.job == job_) {
      is_known_ = true;
      receive(job);
    }
}

void Follower::receive(const core::NodeRecord& node) {
  const auto known = records_.find(node.id);
  if (known == records_.end() || known->second.incarnation < node.incarnation ||
      (known->second.incarnation == node.incarnation && known->second.state < node.state))
    records_[node.id] = node;
}

void Follower::lose(const core::Configuration& next) {
  const auto workers = [](const std::vector<core::Member>& members) {
    return std::ranges::count_if(members, &core::Member::works);
  };
  std::set<wire::NodeId> nodes;
  for (const core::Member& member : configuration_->members_not_in(next)) {
    if (!member.works) continue;
    ++workers_lost_;
    nodes.insert(member.node);
  }
  for (const wire::NodeId node : nodes) {
    const core::NodeRecord& record = records_[node];
    const bool has_left = record.state == core::NodeState::left;
    news_.push_back("node " + record.name + (has_left ? " has left: " : " is gone: ") +
                    std::to_string(workers(next.members)) + " of " +
                    std::to_string(workers(configuration_->members)) + " workers go on without it");
  }
}

std::string Follower::missing() const {
  std::string names;
  for (const wire::NodeId node : member_nodes()) {
    const auto known = records_.find(node);
    if (heard_now_.contains(node) || known == records_.end() || core::is_live(known->second.state))
      continue;
    names += (names.empty() ? "" : ", ") + known->second.name;
  }
  return names;
}

void Follower::receive(const wire::JobStatus& status) {
  // The job may have begun before this follower did.
  if (status.last_step_ms > 0 && status.last_step_ms < worked_max)
    began_ = std::min(began_, Clock::now() - std::chrono::milliseconds{status.last_step_ms});
  const auto members_max = static_cast<core::MemberId>(actor::LocalJobOptions{}.members_max);
  if (status.configuration && core::is_sound(status.configuration, members_max) &&
      (!configuration_ || status.configuration->epoch > configuration_->epoch)) {
    if (configuration_) lose(*status.configuration);
    configuration_ = status.configuration;
    if (auto line = copies_.news(*configuration_, copies_wanted(status.settings)); !line.empty())
      news_.push_back(std::move(line));
  }
  // Nodes of an older epoch may wait, and give up, while the others go on.
  if (status.configuration && status.configuration->epoch > reported_epoch_) {
    reported_epoch_ = status.configuration->epoch;
    blocked_reason_.clear();
    give_up_reason_.clear();
  }
  if (status.configuration && status.configuration->epoch == reported_epoch_) {
    if (blocked_reason_.empty()) blocked_reason_ = printable(status.blocked_reason);
    if (give_up_reason_.empty()) give_up_reason_ = printable(status.give_up_reason);
  }
  for (const auto& member : status.local_members) {
    const auto known = members_.find(member.member);
    if (known == members_.end() || known->second.incarnation <= member.incarnation ||
        (configuration_ && configuration_->contains(member.member, member.incarnation)))
      members_[member.member] = member;
  }
}

JobNews Follower::news() {
  JobNews news;
  actor::Progress& progress = news.progress;
  // The job has not begun, or no node has reported that it has.
  if (!configuration_) began_ = Clock::now();
  if (configuration_) progress.elapsed = Clock::now() - began_;
  std::vector<core::Step> steps;
  core::Time waited{};
  std::uint64_t losses = 0;
  double loss_sum = 0;
  bool all_done = configuration_ != nullptr;
  bool all_paused = all_done;
  for (const auto& [id, member] : members_) {
    using State = actor::MemberReport::State;
    // A member that is shut out and cannot rejoin does not end the job of the others.
    if (member.state == static_cast<std::uint8_t>(State::failed) && is_member(member) &&
        news.failure.empty())
      news.failure = member.why.empty() ? "a member has failed" : member.why;
    // A worker that joined later began at the step of others, and has made fewer steps.
    progress.updates += std::min(member.step, member.loss_count);
    progress.draws += member.draws;
    progress.passes += member.passes;
    losses += member.loss_count;
    loss_sum += member.loss_sum;
  }
  if (configuration_)
    for (const core::Member& member : configuration_->members) {
      if (!member.works) continue;
      const auto known = members_.find(member.id);
      const bool is_known =
          known != members_.end() && known->second.incarnation == member.incarnation;
      all_done = all_done && is_known && is_done(known->second);
      // A node that did not answer just now may run workers that are not paused.
      all_paused =
          all_paused && is_known && known->second.is_paused && heard_now_.contains(member.node);
      // A worker that joins has no step before it knows where to begin.
      if (!is_known || (member.incarnation > 1 && known->second.step == 0)) continue;
      steps.push_back(known->second.step);
      waited += core::Time{known->second.waited_ns};
    }
  if (!steps.empty()) {
    for (const core::Step step : steps) news.mean_step += static_cast<double>(step);
    news.mean_step /= static_cast<double>(steps.size());
    std::ranges::sort(steps);
    progress.spread = {steps.front(), steps[steps.size() / 2], steps.back()};
    progress.waiting_share =
        in_seconds(waited) / (in_seconds(progress.elapsed) * static_cast<double>(steps.size()));
  }
  if (losses > losses_) loss_ = (loss_sum - loss_sum_) / static_cast<double>(losses - losses_);
  losses_ = losses;
  loss_sum_ = loss_sum;
  progress.loss = loss_;
  news.begun = !steps.empty();
  news.done = all_done && !steps.empty();
  news.is_paused = all_paused && !steps.empty();
  news.workers_lost = workers_lost_;
  news.missing = missing();
  news.blocked_reason = blocked_reason_;
  if (heard_now_.empty() && Clock::now() > heard_ + silence_told_after)
    news.blocked_reason = "none of its nodes answers";
  // A failure that only nodes of an older epoch report does not end the job.
  if (!give_up_reason_.empty() && configuration_ && reported_epoch_ == configuration_->epoch &&
      news.failure.empty() && !news.done)
    news.failure = give_up_reason_;
  return news;
}

bool Follower::is_member(const wire::MemberStatus& member) const {
  return !configuration_ || configuration_->contains(member.member, member.incarnation);
}

std::string Follower::primary_of(std::size_t range) const {
  if (!configuration_ || range >= configuration_->ranges.size()) return {};
  const auto& owners = configuration_->ranges[range].owners;
  const core::Member* primary = owners.empty() ? nullptr : configuration_->find(owners.front().id);
  const auto node = primary == nullptr ? nodes_.end() : nodes_.find(primary->node);
  return node == nodes_.end() ? std::string{} : node->second;
}

void Follower::stop(bool is_done) {
  (void)client_.ask_all({addresses_.begin(), addresses_.end()}, wire::StopJob{job_, is_done},
                        answer_within);
}

void Follower::close(wire::JobSummary summary) {
  (void)client_.ask_all({addresses_.begin(), addresses_.end()},
                        wire::CloseJob{job_, std::move(summary)}, answer_within);
}

}  // namespace starling::program
