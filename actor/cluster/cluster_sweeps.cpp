/// How a node looks after its jobs several times a second, and for jobs that run without it.
#include <algorithm>

#include "starling/actor/cluster/cluster_node_impl.hpp"

namespace starling::actor {

void ClusterNode::Impl::sweep() {
  sweep_jobs();
  loop_.post_after(sweep_every, [this] { sweep(); });
}

void ClusterNode::Impl::sweep_jobs() {
  requests_.end_those_to([this](NodeId node) { return is_gone(node); });
  submissions_.look_for_losses();
  for (auto& [id, job] : all_jobs()) {
    job->judge([this](NodeId node) { return nodes_.lives(node, now()); });
    const auto reports = job->local().reports();
    job->keep_time(reports);
    if (!leaving_) rejoin(*job, reports);
    for (const std::string& news : job->check_blocked(
             reports, [this](NodeId node) { return is_responsive(node); },
             [this](NodeId node) { return name_of(node); }))
      log_for_job(id, news);
  }
}

bool ClusterNode::Impl::is_responsive(NodeId node) const {
  bool is_alive = true;
  nodes_.with(node, [&](const auto& known) { is_alive = known.state == core::NodeState::alive; });
  return is_alive;
}

std::string ClusterNode::Impl::name_of(NodeId node) const {
  std::string name = "a node that is not known here any more";
  nodes_.with(node, [&](const auto& known) { name = known.name; });
  return name;
}

void ClusterNode::Impl::rejoin(ClusterJob& job, const std::vector<actor::MemberReport>& reports) {
  std::vector<core::MemberId> anew;
  for (const auto& report : reports)
    if (report.state == actor::MemberReport::State::excluded) anew.push_back(report.member);
  if (anew.empty()) return;
  log_for_job(job.id(), "declared dead; joining again");
  job.rejoin(anew, random_);
  job.local().dismiss(anew);
}

void ClusterNode::Impl::forget_old() {
  std::erase_if(join_attempts_,
                [&](const auto& c) { return now() > c.second + attempt_retention; });
  std::erase_if(closed_, [&](const auto& c) { return now() > c.second + closed_for; });
  while (closed_.size() > closed_max)
    closed_.erase(
        std::ranges::min_element(closed_, {}, [](const auto& closed) { return closed.second; }));
  history_.expire(now());
  submissions_.forget_older_than(attempt_retention);
  const auto runs = [this](JobId id) { return find(id) != nullptr; };
  for (const JobId id : slots_.unused(runs, now() - prepared_for)) drop_preparations(id);
  const auto is_known = [this](NodeId node) {
    return membership_->members().find(node) != nullptr;
  };
  nodes_.forget(is_known, now());
  std::erase_if(revoked_, [&](NodeId node) { return !is_known(node); });
}

void ClusterNode::Impl::look_for_jobs() {
  forget_old();
  tell_loneliness();
  const auto nodes = live_nodes();
  if (!leaving_ && nodes.size() > 1) {
    const auto& other = nodes[1 + random_.below(nodes.size() - 1)];
    endpoint_->compare_revocations(other.address);
    const NodeAddress target{other.id, other.address};
    ask(target, wire::GetStatus{}, std::chrono::seconds{2}, [this, target](auto reply) {
      if (!reply) return;
      if (const auto* status = std::get_if<wire::NodeStatus>(&*reply))
        for (const auto& job : status->jobs) try_to_join(job, target);
    });
  }
  loop_.post_after(look_for_jobs_every, [this] { look_for_jobs(); });
}

}  // namespace starling::actor
