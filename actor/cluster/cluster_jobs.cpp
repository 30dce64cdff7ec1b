// How a node answers requests about its jobs, whether they are being prepared, are running or have
// ended.
#include <utility>

#include "starling/actor/cluster/cluster_node_impl.hpp"

namespace starling::actor {

std::string ClusterNode::Impl::name_of_job(JobId id) const {
  if (const JobPtr job = find(id)) return job->name();
  const auto* slot = job_slots_.find(id);
  return actor::name_of(slot == nullptr ? wire::JobSettings{} : slot->settings, id);
}

wire::NodeStatus ClusterNode::Impl::make_status(const wire::GetStatus& request) {
  wire::NodeStatus status;
  status.self = membership_->self();
  if (request.with_nodes) status.others = nodes_.all();
  status.counts = membership_->counts();
  status.revoked.assign(revoked_.begin(), revoked_.end());
  if (request.job) {
    if (const JobPtr job = find(*request.job))
      status.jobs.push_back(job->status());
    else if (auto preparing = status_if_preparing(*request.job))
      status.jobs.push_back(*std::move(preparing));
    return status;
  }
  for (const auto& [id, slot] : job_slots_.slots())
    if (auto preparing = status_if_preparing(id)) status.jobs.push_back(*std::move(preparing));
  for (const auto& [id, job] : all_jobs()) status.jobs.push_back(job->status());
  return status;
}

std::optional<wire::JobStatus> ClusterNode::Impl::status_if_preparing(JobId id) const {
  const auto* slot = job_slots_.find(id);
  if (slot == nullptr || find(id) || closed_jobs_.contains(id)) return std::nullopt;
  wire::JobStatus status;
  status.job = id;
  status.settings = slot->settings;
  status.client = slot->client;
  status.state = wire::JobState::preparing;
  status.age_ms =
      static_cast<std::uint64_t>((now() - slot->reserved_at) / std::chrono::milliseconds{1});
  return status;
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetLog& request) {
  reply(requester, log_buffer_.read(request.from));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetJobRecords&) {
  reply(requester, history_.records());
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetTrace& request) {
  const JobPtr job = find(request.job);
  if (!job) return reply(requester, refuse_unknown(request.job));
  reply(requester, job->trace(request.from));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetResult& request) {
  const JobPtr job = find(request.job);
  if (!job) return reply(requester, refuse_unknown(request.job));
  reply(requester, job->local().result().value_or(wire::FlowResult{}));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetFlowReport& request) {
  const JobPtr job = find(request.job);
  if (!job) return reply(requester, refuse_unknown(request.job));
  wire::FlowReport report = job->local().flow_report();
  report.node = id_;
  reply(requester, std::move(report));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetJobNotes& request) {
  constexpr std::size_t bytes_max = std::size_t{4} << 20U;
  const JobPtr job = find(request.job);
  if (!job) return reply(requester, refuse_unknown(request.job));
  const std::string& notes = job->prepared().notes();
  wire::JobNotes part{notes.size(), {}};
  if (request.from < notes.size()) part.bytes = notes.substr(request.from, bytes_max);
  reply(requester, std::move(part));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::EvaluateModel& request) {
  const auto prepared = find(request.job) ? prepared_.find(request.job) : nullptr;
  if (!prepared) return reply(requester, refuse_unknown(request.job));
  evaluations_.answer(request, prepared, [this, requester](wire::ReplyBody answer) {
    reply(requester, std::move(answer));
  });
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::StopJob& request) {
  const JobPtr job = find(request.job);
  // A node that was going to join the job need not join it any more.
  if (!job && join_attempts_.contains(request.job)) drop_preparations(request.job);
  if (!job && prepared_.contains(request.job))
    return reply(requester, wire::Refused{"the job has not started here yet"});
  if (job) job->stop(request.is_done);
  reply(requester, wire::Done{});
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::CloseJob& request) {
  submissions_.close(request.job);
  if (request.summary) history_.set_outcome(request.job, *request.summary, now());
  // A node that never knew the job need not remember that it is closed.
  if (find(request.job) || prepared_.contains(request.job) || join_attempts_.contains(request.job))
    close_job(request.job, request.summary);
  drop_preparations(request.job);
  reply(requester, wire::Done{});
}

void ClusterNode::Impl::close_job(JobId id, const std::optional<wire::JobSummary>& summary) {
  if (const JobPtr job = find(id)) {
    wire::JobRecord record = job->record(summary);
    if (const auto line = job->new_end_line(record.summary)) log_for_job(id, *line);
    history_.add(std::move(record), now());
  }
  tear_down(id);
}

}  // namespace starling::actor
