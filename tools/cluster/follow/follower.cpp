#include "starling/tools/cluster/follow/follower.hpp"

#include <algorithm>
#include <numeric>
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

/// A node that did not answer is asked again after this time.
constexpr auto silent_retry_interval = 5s;
/// If no node answers for this time, the job is reported as blocked. A busy node answers sooner.
constexpr auto silence_reported_after = 3s;
/// If nodes of the job answer for this time and none of them has it, the job counts as dropped.
constexpr auto dropped_after = 3s;
/// About 35 years. A node that reports a greater age of the job is not believed.
constexpr core::Time age_max = std::chrono::hours{24 * 365 * 35};

bool is_done(const wire::MemberStatus& member) {
  return member.state == static_cast<std::uint8_t>(actor::MemberReport::State::done);
}

}  // namespace

Result<JobReport> Follower::poll(bool awaits_all) {
  answering_nodes_.clear();
  is_job_reported_ = false;
  reported_epoch_ = 0;
  blocked_reason_.clear();
  give_up_reason_.clear();
  const auto asked = addresses_to_ask();
  const auto replies = awaits_all
                           ? client_.ask_all(asked, wire::GetStatus{}, reply_timeout)
                           : client_.ask_briefly(asked, wire::GetStatus{}, reply_timeout, grace);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto* status = replies[i] ? std::get_if<wire::NodeStatus>(&*replies[i]) : nullptr;
    if (status != nullptr) {
      receive(asked[i], *status);
      continue;
    }
    const auto since = unanswered_since_.try_emplace(asked[i], Clock::now()).first->second;
    if (awaits_all || Clock::now() >= since + reply_timeout) silent_at_[asked[i]] = Clock::now();
  }
  const auto members = configuration_ ? member_nodes() : answering_nodes_;
  const bool is_missing = !is_job_reported_ && std::ranges::any_of(members, [&](wire::NodeId node) {
    return answering_nodes_.contains(node);
  });
  if (!is_missing) not_missing_at_ = Clock::now();
  is_dropped_ = Clock::now() > not_missing_at_ + dropped_after;
  if (is_dropped_) return Error{"the job was dropped: no node has it any more"};
  if (Clock::now() > answered_at_ + silence_max_)
    return Error{"no node of the job has answered for " +
                 std::to_string(silence_max_ / std::chrono::seconds{1}) + " s (--wait-for-nodes)"};
  return make_report();
}

std::vector<std::string> Follower::addresses_to_ask() const {
  std::vector<std::string> asked;
  for (const std::string& address : addresses_) {
    const auto silent = silent_at_.find(address);
    // A silent node must not delay every poll.
    if (silent == silent_at_.end() || addresses_.size() == 1 ||
        Clock::now() >= silent->second + silent_retry_interval)
      asked.push_back(address);
  }
  return asked;
}

std::vector<std::string> Follower::answering_addresses() const {
  std::vector<std::string> answering;
  for (const std::string& address : addresses_)
    if (!unanswered_since_.contains(address)) answering.push_back(address);
  if (answering.empty()) answering.assign(addresses_.begin(), addresses_.end());
  return answering;
}

std::map<wire::NodeId, std::string> Follower::answering_nodes() const {
  std::map<wire::NodeId, std::string> answering;
  for (const wire::NodeId node : answering_nodes_) answering[node] = address_of_node_.at(node);
  return answering;
}

void Follower::receive(const std::string& address, const wire::NodeStatus& status) {
  answered_at_ = Clock::now();
  unanswered_since_.erase(address);
  silent_at_.erase(address);
  address_of_node_[status.self.id] = address;
  answering_nodes_.insert(status.self.id);
  for (const auto& other : status.others) receive(other);
  records_[status.self.id] = status.self;
  for (const auto& other : status.others)
    if (!core::is_live(other.state)) addresses_.erase(other.address);
  // Live nodes are inserted last, because a new node may have the address of a dead one.
  addresses_.insert(address);
  for (const auto& other : status.others)
    if (core::is_live(other.state)) addresses_.insert(other.address);
  for (const auto& job : status.jobs)
    if (job.job == job_) {
      is_job_reported_ = true;
      receive(job);
    }
}

void Follower::receive(const core::NodeRecord& node) {
  const auto known = records_.find(node.id);
  if (known == records_.end() || known->second.incarnation < node.incarnation ||
      (known->second.incarnation == node.incarnation && known->second.state < node.state))
    records_[node.id] = node;
}

std::string Follower::name_of(wire::NodeId node) const {
  const auto known = records_.find(node);
  return known == records_.end() ? "of no known name" : printable(known->second.name);
}

void Follower::note_changes(const core::Configuration& next) {
  const auto count_by_node = [](const std::vector<core::Member>& members) {
    std::map<wire::NodeId, std::size_t> workers;
    for (const core::Member& member : members)
      if (member.works) ++workers[member.node];
    return workers;
  };
  const auto count = [](const std::vector<core::Member>& members) {
    return static_cast<std::size_t>(std::ranges::count_if(members, &core::Member::works));
  };
  const auto lost = count_by_node(configuration_->members_not_in(next));
  const std::size_t before = count(configuration_->members);
  std::size_t rest = before;
  for (const auto& [node, workers] : lost) rest -= workers;
  for (const auto& [node, workers] : lost) {
    lost_workers_.insert(lost_workers_.end(), workers, node);
    const auto record = records_.find(node);
    const core::NodeState state =
        record == records_.end() ? core::NodeState::dead : record->second.state;
    // A node that leaves hands over its ranges before it says to all nodes that it has left.
    const char* fate = state == core::NodeState::left    ? " has left: "
                       : state == core::NodeState::alive ? " leaves the job: "
                                                         : " is gone: ";
    events_.push_back("node " + name_of(node) + fate + std::to_string(rest) + " of " +
                      print_count(before, "worker") + (rest == 1 ? " goes" : " go") +
                      " on without it");
  }
  for (const auto& [node, workers] : count_by_node(next.members_not_in(*configuration_)))
    events_.push_back("node " + name_of(node) + " has joined with " +
                      print_count(workers, "worker") + ": the job has " +
                      print_count(count(next.members), "worker") + " now");
}

WorkerFates Follower::fates_of_lost() const {
  WorkerFates fates;
  for (const wire::NodeId node : lost_workers_) {
    const auto record = records_.find(node);
    const bool is_alive =
        record != records_.end() && record->second.state == core::NodeState::alive;
    // A node that is alive and has members was declared dead and has come back; one that has none
    // is about to leave.
    const bool has_left =
        record != records_.end() && (record->second.state == core::NodeState::left ||
                                     (is_alive && !member_nodes().contains(node)));
    ++(has_left ? fates.left : fates.died);
  }
  return fates;
}

std::string Follower::missing_nodes() const {
  std::string names;
  for (const wire::NodeId node : member_nodes()) {
    const auto known = records_.find(node);
    if (answering_nodes_.contains(node) || known == records_.end() ||
        core::is_live(known->second.state))
      continue;
    names += (names.empty() ? "" : ", ") + known->second.name;
  }
  return names;
}

void Follower::receive(const wire::JobStatus& status) {
  // The job may have begun before this object was made. It is older than its last step, and no
  // worker has waited for longer.
  const auto note_age = [&](core::Time age) {
    if (age > core::Time{} && age < age_max) began_at_ = std::min(began_at_, Clock::now() - age);
  };
  if (status.last_step_ms < std::uint64_t{age_max / 1ms})
    note_age(std::chrono::milliseconds{status.last_step_ms});
  for (const auto& member : status.local_members) note_age(core::Time{member.waited_ns});
  const auto members_max = static_cast<core::MemberId>(actor::LocalJobOptions{}.members_max);
  if (status.configuration && core::is_valid(status.configuration, members_max) &&
      (!configuration_ || status.configuration->epoch > configuration_->epoch)) {
    if (configuration_) note_changes(*status.configuration);
    configuration_ = status.configuration;
    exchange_ = exchange_of(status.settings);
    if (auto line = copies_.describe_change(*configuration_, copies_wanted(status.settings));
        !line.empty())
      events_.push_back(std::move(line));
  }
  // Nodes in an older configuration epoch may wait, or give up, while the others go on.
  if (status.configuration && status.configuration->epoch > reported_epoch_) {
    reported_epoch_ = status.configuration->epoch;
    blocked_reason_.clear();
    give_up_reason_.clear();
  }
  if (status.configuration && status.configuration->epoch == reported_epoch_) {
    if (blocked_reason_.empty()) blocked_reason_ = printable(status.blocked_reason);
    if (give_up_reason_.empty()) give_up_reason_ = printable(status.give_up_reason);
  }
  const auto note_updates = [&](const core::MemberIncarnation& worker, std::uint64_t updates) {
    updates_[worker] = std::max(updates_[worker], updates);
  };
  for (const auto& other : status.counts.other_workers) note_updates(other.worker, other.updates);
  for (const auto& member : status.local_members) {
    note_updates({member.member, member.incarnation}, member.updates);
    const auto known = members_.find(member.member);
    if (known == members_.end() || known->second.incarnation <= member.incarnation ||
        (configuration_ && configuration_->contains(member.member, member.incarnation)))
      members_[member.member] = member;
  }
}

JobReport Follower::make_report() {
  JobReport report;
  actor::Progress& progress = report.progress;
  // Without a configuration, the job has not begun, or no node has reported that it has.
  if (!configuration_) began_at_ = Clock::now();
  if (configuration_) progress.elapsed = Clock::now() - began_at_;
  std::vector<core::Step> steps;
  std::vector<double> epochs;
  core::Time waited{};
  core::Time active{};
  std::uint64_t loss_count = 0;
  double loss_sum = 0;
  std::vector<core::CopyHash> copies;
  bool all_done = configuration_ != nullptr;
  bool all_paused = all_done;
  for (const auto& [id, member] : members_) {
    using State = actor::MemberReport::State;
    // A failed member that the configuration no longer has does not end the job.
    if (member.state == static_cast<std::uint8_t>(State::failed) && is_member(member) &&
        report.failure.empty())
      report.failure = member.why.empty() ? "a member has failed" : member.why;
    progress.draws += member.draws.draws;
    progress.passes += member.draws.passes;
    if (is_member(member)) progress.tuned.add(member.draws.tuned);
    progress.reads += member.reads;
    loss_count += member.loss_count;
    loss_sum += member.loss_sum;
  }
  for (const auto& [worker, updates] : updates_) progress.updates += updates;
  report.workers = fates_of_lost();
  if (configuration_)
    for (const core::Member& member : configuration_->members) {
      if (!member.works) continue;
      const auto known = members_.find(member.id);
      const bool is_known =
          known != members_.end() && known->second.incarnation == member.incarnation;
      const bool has_finished = is_known && is_done(known->second);
      if (has_finished) ++report.workers.finished;
      if (has_finished) copies.push_back(known->second.copy);
      all_done = all_done && has_finished;
      // Workers of a node that did not answer at this poll may have gone on.
      all_paused = all_paused && is_known && known->second.is_paused &&
                   answering_nodes_.contains(member.node);
      // A joining worker has no step until it knows at which one to begin.
      if (!is_known || (member.incarnation > 1 && known->second.step == 0)) continue;
      steps.push_back(known->second.step);
      if (known->second.deal.batch > 0) progress.batches.push_back(known->second.deal.batch);
      if (known->second.deal.data_epoch) {
        epochs.push_back(*known->second.deal.data_epoch);
        report.has_made_all_steps = report.has_made_all_steps.value_or(true) &&
                                    known->second.step >= known->second.deal.last_step;
        progress.last_step =
            std::max(progress.last_step.value_or(0), known->second.deal.last_step.value_or(0));
      }
      waited += core::Time{known->second.waited_ns};
      active += core::Time{known->second.active_ns};
    }
  if (!steps.empty()) {
    for (const core::Step step : steps) report.mean_step += static_cast<double>(step);
    report.mean_step /= static_cast<double>(steps.size());
    std::ranges::sort(steps);
    progress.spread = {steps.front(), steps[steps.size() / 2], steps.back()};
    progress.waiting_share = active > core::Time{} ? in_seconds(waited) / in_seconds(active) : 0;
  }
  if (!epochs.empty())
    progress.data_epoch =
        std::accumulate(epochs.begin(), epochs.end(), 0.0) / static_cast<double>(epochs.size());
  if (loss_count > loss_count_)
    loss_ = (loss_sum - loss_sum_) / static_cast<double>(loss_count - loss_count_);
  loss_count_ = loss_count;
  loss_sum_ = loss_sum;
  progress.loss = loss_;
  report.has_begun = !steps.empty();
  report.is_done = all_done && !steps.empty();
  if (report.is_done) report.workers.have_equal_copies = have_equal_copies(copies);
  report.is_paused = all_paused && !steps.empty();
  report.missing_nodes = missing_nodes();
  report.blocked_reason = blocked_reason_;
  if (answering_nodes_.empty() && Clock::now() > answered_at_ + silence_reported_after)
    report.blocked_reason = "none of its nodes answers";
  // A node in an older configuration epoch may have given up a job that goes on without it.
  if (!give_up_reason_.empty() && configuration_ && reported_epoch_ == configuration_->epoch &&
      report.failure.empty() && !report.is_done)
    report.failure = give_up_reason_;
  return report;
}

bool Follower::is_member(const wire::MemberStatus& member) const {
  return !configuration_ || configuration_->contains(member.member, member.incarnation);
}

std::string Follower::address_of(core::RangeId range) const {
  if (!configuration_) return {};
  const auto answerer = core::exchange_answerer(exchange_, *configuration_, range);
  const core::Member* member = answerer ? configuration_->find(*answerer) : nullptr;
  const auto node =
      member == nullptr ? address_of_node_.end() : address_of_node_.find(member->node);
  return node == address_of_node_.end() ? std::string{} : node->second;
}

void Follower::stop(bool is_done) {
  (void)client_.ask_all(answering_addresses(), wire::StopJob{job_, is_done}, reply_timeout);
}

void Follower::close(wire::JobSummary summary) {
  (void)client_.ask_all({addresses_.begin(), addresses_.end()},
                        wire::CloseJob{job_, std::move(summary)}, reply_timeout);
}

}  // namespace starling::program
