/// The node's periodic work. 4 times a second it fails the requests to nodes that are gone,
/// continues the submissions without these nodes, and checks its jobs. Once a second it deletes old
/// records. Unless it is leaving, it then also compares revocations with a random node, and asks
/// that node which jobs it runs, in order to join the jobs that run without this node.
#include <algorithm>

#include "starling/actor/cluster/cluster_node_impl.hpp"

namespace starling::actor {

void ClusterNode::Impl::sweep() {
  sweep_jobs();
  loop_.post_after(sweep_period, [this] { sweep(); });
}

void ClusterNode::Impl::sweep_jobs() {
  requests_.fail_requests_to([this](NodeId node) { return is_gone(node); });
  submissions_.remove_gone_nodes();
  for (auto& [id, job] : all_jobs()) {
    // Members must reach each other themselves: a node that only others reach counts as dead here.
    job->report_liveness([this](NodeId node) {
      return membership_->is_silent(node) ? false : nodes_.is_believed_live(node, now());
    });
    const auto reports = job->local().reports();
    job->update_progress(reports);
    for (const std::string& why : job->new_failures(reports)) log_for_job(id, "failed: " + why);
    if (const auto line = job->new_end_line_of_flow(reports)) log_for_job(id, *line);
    if (!is_leaving_) rejoin(*job, reports);
    for (const std::string& line : job->check_blocked(
             reports, [this](NodeId node) { return nodes_.is_responsive(node); },
             [this](NodeId node) { return nodes_.is_replaced(node, address_); },
             [this](NodeId node) { return name_of(node); }))
      log_for_job(id, line);
  }
}

std::set<ClusterNode::Impl::NodeId> ClusterNode::Impl::nodes_of_jobs() const {
  std::set<NodeId> nodes;
  for (const auto& [id, job] : all_jobs()) {
    const core::ConfigurationPtr configuration = job->configuration();
    for (const core::Member& member : configuration->members) nodes.insert(member.node);
  }
  return nodes;
}

std::string ClusterNode::Impl::name_of(NodeId node) const {
  std::string name = "(unknown)";
  nodes_.visit(node, [&](const auto& record) { name = record.name; });
  return name;
}

void ClusterNode::Impl::rejoin(ClusterJob& job, const std::vector<actor::MemberReport>& reports) {
  // In a long partition a member fails before it learns that the council has excluded it.
  const core::ConfigurationPtr latest = job.configuration();
  const auto is_left_behind = [&](const actor::MemberReport& report) {
    return report.state == actor::MemberReport::State::failed &&
           latest->is_or_was_member(report.member, report.incarnation) &&
           !latest->contains(report.member, report.incarnation);
  };
  std::vector<core::MemberId> excluded;
  for (const auto& report : reports)
    if (report.state == actor::MemberReport::State::excluded || is_left_behind(report))
      excluded.push_back(report.member);
  if (excluded.empty()) return;
  // While a member's node does not reach this node, the council would remove this node's new
  // members again.
  for (const core::Member& member : latest->members)
    if (membership_->is_silent(member.node)) return;
  if (!job.begin_rejoin()) return;
  log_for_job(job.id(), "members here were declared dead; joining again");
  job.local().end_members(excluded);  // first: a new member may get the id of one of them
  job.rejoin(excluded, random_);
}

void ClusterNode::Impl::expire_records() {
  std::erase_if(join_attempts_,
                [&](const auto& attempt) { return now() > attempt.second + attempt_retention; });
  std::erase_if(closed_jobs_,
                [&](const auto& closed) { return now() > closed.second + closed_retention; });
  while (closed_jobs_.size() > closed_jobs_max)
    closed_jobs_.erase(std::ranges::min_element(closed_jobs_, {},
                                                [](const auto& closed) { return closed.second; }));
  history_.expire(now());
  evaluations_.expire();
  submissions_.forget_older_than(attempt_retention);
  // A computation of a closed job may never return; the reaper then needs another thread for the
  // other closed jobs.
  reaper_->replace_hanging_threads();
  const auto runs = [this](JobId id) { return find(id) != nullptr; };
  for (const JobId id : job_slots_.unused(runs, now() - prepared_retention)) drop_preparations(id);
  const auto is_known = [this](NodeId node) { return membership_->nodes().find(node) != nullptr; };
  nodes_.remove_dead(is_known, nodes_of_jobs(), now());
  std::erase_if(revoked_, [&](NodeId node) { return !is_known(node); });
}

void ClusterNode::Impl::look_for_jobs() {
  expire_records();
  log_isolation();
  const auto nodes = live_nodes();  // nodes[0] is this node
  if (!is_leaving_ && nodes.size() > 1) {
    const auto& other = nodes[1 + random_.below(nodes.size() - 1)];
    endpoint_->compare_revocations(other.address);
    const NodeAddress target{other.id, other.address};
    ask(target, wire::GetStatus{.job = {}, .with_nodes = false}, std::chrono::seconds{2},
        [this, target](auto reply) {
          if (!reply) return;
          if (const auto* status = std::get_if<wire::NodeStatus>(&*reply))
            for (const auto& job : status->jobs) {
              if (const JobPtr own = find(job.job)) own->merge_status(job);
              try_to_join(job, target);
            }
        });
  }
  loop_.post_after(look_for_jobs_period, [this] { look_for_jobs(); });
}

}  // namespace starling::actor
