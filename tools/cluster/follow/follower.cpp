#include "starling/tools/cluster/follow/follower.hpp"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "starling/base/seconds.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/interrupt.hpp"

namespace starling::program {
namespace {

using namespace std::chrono_literals;

/// Each node lists all nodes. Until the first worker is lost, a poll asks for these lists only if
/// the last ones are older than this.
constexpr auto list_age = 1s;
/// A node that did not answer is asked again after this time.
constexpr auto silent_retry_interval = 5s;
/// If no node answers for this time, the job is reported as blocked. Even a busy node answers
/// sooner.
constexpr auto silence_reported_after = 3s;
/// If nodes of the job answer for this time and none of them has it, the job counts as dropped.
constexpr auto dropped_after = 3s;
/// About 35 years. A node that reports a greater age of the job is not believed.
constexpr core::Time age_max = std::chrono::hours{24 * 365 * 35};

}  // namespace

Result<JobReport> Follower::poll(bool awaits_all) {
  answering_nodes_.clear();
  is_job_reported_ = false;
  merged_.forget_reasons();
  const auto asked = addresses_to_ask();
  const bool with_nodes =
      awaits_all || !lost_workers_.empty() || Clock::now() >= listed_at_ + list_age;
  ask(asked, with_nodes, awaits_all);
  if (const core::ConfigurationPtr& latest = merged_.configuration; latest != noted_) {
    // The nodes' lists say why members have gone.
    if (!with_nodes) ask(asked, true, awaits_all);
    if (noted_) note_changes(*noted_, *latest);
    if (auto line = replica_monitor_.describe_change(*latest, replicas_wanted_); !line.empty())
      events_.push_back(std::move(line));
    noted_ = latest;
  }
  const auto members = merged_.configuration ? member_nodes() : answering_nodes_;
  const bool is_missing = !is_job_reported_ && std::ranges::any_of(members, [&](wire::NodeId node) {
    return answering_nodes_.contains(node);
  });
  if (!is_missing) not_missing_at_ = Clock::now();
  is_dropped_ = Clock::now() > not_missing_at_ + dropped_after;
  if (is_dropped_) return Error{"the job was dropped: no node has it any more"};
  if (Clock::now() > answered_at_ + silence_reported_after)
    if (auto valid = client_.check_certificate(); !valid)
      return Error{"--keys: " + valid.error().message + ", and no node answers since then"};
  if (Clock::now() > answered_at_ + silence_max_)
    return Error{"no node of the job has answered for " +
                 std::to_string(silence_max_ / std::chrono::seconds{1}) + " s (--wait-for-nodes)"};
  return make_report();
}

void Follower::ask(const std::vector<std::string>& addresses, bool with_nodes, bool awaits_all) {
  const wire::GetStatus request{.job = job_, .with_nodes = with_nodes};
  const auto replies = awaits_all ? client_.ask_all(addresses, request, reply_timeout)
                                  : client_.poll_all(addresses, request, reply_timeout, grace);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::string& address = addresses[i];
    const auto* status = replies[i] ? std::get_if<wire::NodeStatus>(&*replies[i]) : nullptr;
    if (status != nullptr) {
      receive(address, *status);
      continue;
    }
    const auto since = unanswered_since_.try_emplace(address, Clock::now()).first->second;
    if (awaits_all || Clock::now() >= since + reply_timeout) silent_at_[address] = Clock::now();
  }
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
  // Other nodes, such as one that was started anew at the address of a dead one, do not count.
  bool is_of_job = !merged_.configuration || member_nodes().contains(status.self.id);
  unanswered_since_.erase(address);
  silent_at_.erase(address);
  address_of_node_[status.self.id] = address;
  answering_nodes_.insert(status.self.id);
  if (!status.others.empty()) listed_at_ = Clock::now();
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
      is_of_job = true;
      is_job_reported_ = true;
      receive(job, printable(status.self.name));
    }
  if (is_of_job) answered_at_ = Clock::now();
}

void Follower::receive(const core::NodeRecord& node) {
  const auto known = records_.find(node.id);
  if (known == records_.end() || known->second.incarnation < node.incarnation ||
      (known->second.incarnation == node.incarnation && known->second.state < node.state))
    records_[node.id] = node;
}

std::string Follower::name_of(wire::NodeId node) const {
  const auto known = records_.find(node);
  return known == records_.end() ? "(name unknown)" : printable(known->second.name);
}

void Follower::note_changes(const core::Configuration& former, const core::Configuration& next) {
  const auto count_by_node = [](const std::vector<core::Member>& members) {
    std::map<wire::NodeId, std::size_t> workers;
    for (const core::Member& member : members)
      if (member.works) ++workers[member.node];
    return workers;
  };
  // If several nodes go or come in one change, each line starts from the count in the line before.
  auto present =
      static_cast<std::size_t>(std::ranges::count_if(former.members, &core::Member::works));
  for (const auto& [node, workers] : count_by_node(former.members_not_in(next))) {
    const std::size_t rest = present - workers;
    lost_workers_.insert(lost_workers_.end(), workers, node);
    const auto record = records_.find(node);
    const core::NodeState state =
        record == records_.end() ? core::NodeState::dead : record->second.state;
    // A node that leaves hands over its ranges before it says to all nodes that it has left.
    const char* fate = state == core::NodeState::left    ? " has left: "
                       : state == core::NodeState::alive ? " leaves the job: "
                                                         : " is gone: ";
    events_.push_back("node " + name_of(node) + fate + std::to_string(rest) + " of " +
                      print_count(present, "worker") + (rest == 1 ? " goes" : " go") +
                      " on without it");
    present = rest;
  }
  for (const auto& [node, workers] : count_by_node(next.members_not_in(former))) {
    present += workers;
    events_.push_back("node " + name_of(node) + " has joined with " +
                      print_count(workers, "worker") + ": the job has " +
                      print_count(present, "worker") + " now");
  }
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
    names += (names.empty() ? "" : ", ") + printable(known->second.name);
  }
  return names;
}

void Follower::receive(const wire::JobStatus& status, const std::string& node) {
  // The job may have begun before this object was made. Its age is at least the age at which it
  // made its last step, and at least the time for which any worker has waited.
  const auto note_age = [&](core::Time age) {
    if (age > core::Time{} && age < age_max) began_at_ = std::min(began_at_, Clock::now() - age);
  };
  if (status.last_step_ms < std::uint64_t{age_max / 1ms}) {
    note_age(std::chrono::milliseconds{status.last_step_ms});
    last_age_ = std::max<core::Time>(last_age_, std::chrono::milliseconds{status.last_step_ms});
  }
  for (const auto& member : status.local_members) {
    note_age(core::Time{member.waited_ns});
    last_age_ = std::max(last_age_, core::Time{member.active_ns});
  }
  merged_.receive(status, node);
  exchange_ = exchange_of(status.settings);
  replicas_wanted_ = replicas_wanted(status.settings);
}

JobReport Follower::make_report() {
  const core::ConfigurationPtr& configuration = merged_.configuration;
  JobReport report;
  actor::Progress& progress = report.progress;
  // Without a configuration, the job has not begun, or no node has reported that it has.
  if (!configuration) began_at_ = Clock::now();
  if (configuration) progress.elapsed = Clock::now() - began_at_;
  std::vector<core::Step> steps;
  std::vector<double> epochs;
  core::Time waited{};
  core::Time active{};
  std::uint64_t loss_count = 0;
  double loss_sum = 0;
  std::vector<core::CopyHash> copies;
  bool all_done = configuration != nullptr;
  bool all_paused = all_done;
  for (const auto& [id, member] : merged_.members) {
    const wire::MemberStatus& status = member.status;
    progress.draws += status.draws.draws;
    progress.passes += status.draws.passes;
    if (merged_.is_member(status)) progress.tuned.add(status.draws.tuned);
    progress.reads += status.reads;
    loss_count += status.loss_count;
    loss_sum += status.loss_sum;
  }
  progress.updates = merged_.updates_made();
  // A failed member that the configuration no longer has does not end the job.
  report.failure = merged_.member_failure();
  report.workers = fates_of_lost();
  if (configuration)
    for (const core::Member& member : configuration->members) {
      if (!member.works) continue;
      const auto known = merged_.members.find(member.id);
      const bool is_known =
          known != merged_.members.end() && known->second.status.incarnation == member.incarnation;
      // Workers of a node that did not answer at this poll may have gone on.
      all_paused = all_paused && is_known && known->second.status.is_paused &&
                   answering_nodes_.contains(member.node);
      if (!is_known) {
        all_done = false;
        continue;
      }
      const wire::MemberStatus& status = known->second.status;
      const bool has_finished = is_in(status, actor::MemberReport::State::done);
      if (has_finished) ++report.workers.finished;
      if (has_finished) copies.push_back(status.copy_hash);
      all_done = all_done && has_finished;
      // A joining worker has no step until it knows at which one to begin. One that joined when all
      // others had ended or were stopped has ended at the job's last step without an update.
      if (member.incarnation > 1 && status.updates == 0) continue;
      steps.push_back(status.step);
      if (status.deal.batch > 0) progress.batches.push_back(status.deal.batch);
      if (status.deal.data_epoch) {
        epochs.push_back(*status.deal.data_epoch);
        report.has_made_all_steps =
            report.has_made_all_steps.value_or(true) && status.step >= status.deal.last_step;
        progress.last_step =
            std::max(progress.last_step.value_or(0), status.deal.last_step.value_or(0));
      }
      waited += core::Time{status.waited_ns};
      active += core::Time{status.active_ns};
    }
  if (!steps.empty()) {
    for (const core::Step step : steps) report.mean_step += static_cast<double>(step);
    report.mean_step /= static_cast<double>(steps.size());
    progress.mean_step = report.mean_step;
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
  report.is_done = all_done && report.workers.finished > 0;
  if (report.is_done) report.workers.have_equal_copies = have_equal_copies(copies);
  if (report.is_done) report.ended_after = std::min(progress.elapsed, last_age_);
  report.is_paused = all_paused && !steps.empty();
  report.missing_nodes = missing_nodes();
  report.blocked_reason = merged_.blocked_reason;
  if (Clock::now() > answered_at_ + silence_reported_after)
    report.blocked_reason = "none of its nodes answers";
  // A node in an older configuration epoch may have given up a job that goes on without it.
  if (!merged_.give_up_reason.empty() && configuration &&
      merged_.reported_epoch == configuration->epoch && report.failure.empty() && !report.is_done)
    report.failure = merged_.give_up_reason;
  return report;
}

std::string Follower::address_of(core::RangeId range) const {
  if (!merged_.configuration) return {};
  const auto answerer = core::exchange_answerer(exchange_, *merged_.configuration, range);
  const core::Member* member = answerer ? merged_.configuration->find(*answerer) : nullptr;
  const auto node =
      member == nullptr ? address_of_node_.end() : address_of_node_.find(member->node);
  return node == address_of_node_.end() ? std::string{} : node->second;
}

void Follower::stop_job(bool is_done) {
  (void)client_.ask_all(answering_addresses(), wire::StopJob{job_, is_done}, reply_timeout);
}

void Follower::close_job(wire::JobSummary summary) {
  (void)client_.ask_all({addresses_.begin(), addresses_.end()},
                        wire::CloseJob{job_, std::move(summary)}, reply_timeout);
}

}  // namespace starling::program
