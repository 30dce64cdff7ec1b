// How a node answers requests to submit, prepare, start and pause jobs and to read their ranges,
// and how it joins jobs that run on other nodes.
#include "starling/actor/cluster/cluster_node_impl.hpp"
#include "starling/base/catch_errors.hpp"
#include "starling/base/text.hpp"

namespace starling::actor {
namespace {

using namespace std::chrono_literals;

/// The longest time that a client may pause a job for. A job must not stay paused if the client
/// ends before it lets the workers continue.
constexpr std::chrono::milliseconds pause_max = 10s;
/// How long this node waits for another node's answer to a request to stop a job.
constexpr std::chrono::milliseconds stop_timeout = 10s;
/// The time from a failed request until this node repeats it.
constexpr std::chrono::milliseconds stop_retry_delay = 1s;

}  // namespace

wire::Refused ClusterNode::Impl::refuse_unknown(JobId id) {
  return wire::Refused{"job " + std::to_string(id) + ": this node does not have it"};
}

void ClusterNode::Impl::try_to_join(const wire::JobStatus& job, const NodeAddress& address) {
  // The job is closed here, but the node at `address` missed that, for example in a partition.
  if (closed_jobs_.contains(job.job))
    return ask(address, wire::CloseJob{job.job}, 2s, [](const auto&) {});
  const bool runs_there =
      std::ranges::any_of(job.local_members, [](const wire::MemberStatus& member) {
        return member.state == static_cast<std::uint8_t>(actor::MemberReport::State::running);
      });
  // A prepared job starts here by StartJob, unless its configuration lists no member of this node:
  // then it has begun without this node, for example because the others took this node for dead.
  const bool awaits_start =
      prepared_.contains(job.job) &&
      (!job.configuration ||
       std::ranges::count(job.configuration->members, id_, &core::Member::node) > 0);
  // The last condition: too many closed jobs are still being torn down. A later call tries again.
  if (!runs_there || job.state != wire::JobState::running || !job.give_up_reason.empty() ||
      find(job.job) || awaits_start || is_leaving_ || prepared_.is_busy() ||
      reaper_->pending_count() >= teardowns_max)
    return;
  if (!join_attempts_.emplace(job.job, now()).second) return;
  if (auto reserved = job_slots_.reserve(job.job, job.settings, job.client, now()); !reserved)
    return log_buffer_.add("this node does not join: " + reserved.error().message,
                           actor::name_of(job.settings, job.job));
  prepared_.prepare(
      job.job, job.settings, live_nodes().size(), {},
      [this, id = job.job, address](const auto& prepared) {
        auto reserved = prepared ? reserve_threads(id, **prepared) : Result<void>{prepared.error()};
        if (is_leaving_ || !reserved) {
          if (!reserved) log_for_job(id, reserved.error().message);
          return drop_preparations(id);
        }
        ask(address, wire::GetJob{id}, 10s, [this, id, job = *prepared](auto reply) {
          const auto* description = reply ? std::get_if<wire::JobDescription>(&*reply) : nullptr;
          if (find(id) || !prepared_.contains(id)) return;  // started or stopped meanwhile
          if (description == nullptr || is_leaving_) {
            join_attempts_.erase(id);
            return drop_preparations(id);
          }
          if (description->data_fingerprint != job->data_fingerprint()) {
            log_for_job(id, "this node does not join: it reads other data than the job's nodes");
            return drop_preparations(id);
          }
          if (auto valid = job->set_checkpoint_history(description->former_deals,
                                                       description->updates_before,
                                                       description->steps_before);
              !valid) {
            log_for_job(id, "the job's description: " + valid.error().message);
            return drop_preparations(id);
          }
          start_job(id, description->configuration, std::chrono::milliseconds{description->age_ms},
                    [this, id](const Result<void>& started) {
                      if (started) return;
                      log_for_job(id, started.error().message);
                      drop_preparations(id);
                    });
        });
      });
}

// --- requests ---

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetStatus& request) {
  reply(requester, make_status(request));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::PrepareJob& request) {
  if (is_leaving_ || closed_jobs_.contains(request.job))
    return reply(requester, wire::Refused{is_leaving_ ? leaving_reason : closed_reason});
  if (auto valid = PreparedJobs::check_settings(request.settings); !valid)
    return reply(requester, wire::Refused{valid.error().message});
  if (auto is_free =
          job_slots_.check_name(actor::setting_of(request.settings, "name"), request.job);
      !is_free)
    return reply(requester, wire::Refused{.why = is_free.error().message, .is_name_taken = true});
  if (auto reserved = reserve_slot(request); !reserved)
    return reply(requester, wire::Refused{reserved.error().message});
  prepared_.prepare(
      request.job, request.settings, request.nodes, requester.address,
      [this, requester, id = request.job](const auto& prepared) {
        auto reserved = prepared ? reserve_threads(id, **prepared) : Result<void>{prepared.error()};
        if (!reserved) {
          drop_preparations(id);
          return reply(requester, wire::Refused{reserved.error().message});
        }
        reply(requester, wire::JobPrepared{(*prepared)->fingerprint(),
                                           static_cast<std::uint32_t>((*prepared)->ranges())});
      });
}

Result<void> ClusterNode::Impl::reserve_slot(const wire::PrepareJob& request) {
  // Closed jobs hold memory and threads until they are torn down.
  if (const std::size_t teardowns = reaper_->pending_count(); teardowns >= teardowns_max)
    return Error{"this node is still tearing down " + std::to_string(teardowns) +
                 " closed jobs; valid: fewer than " + std::to_string(teardowns_max) +
                 ", so try again later, or restart the node if steps of theirs never return"};
  return job_slots_.reserve(request.job, request.settings, request.client, now());
}

Result<void> ClusterNode::Impl::reserve_threads(JobId id, const PreparedJob& prepared) {
  return job_slots_.reserve_threads(id, compute_threads(prepared.options()));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::StartJob& request) {
  if (closed_jobs_.contains(request.job)) return reply(requester, wire::Refused{closed_reason});
  const bool is_running = find(request.job) != nullptr;
  if (!is_running)
    for (const JobId previous_id : request.previous_ids)
      reuse_preparations(previous_id, request.job);
  // leave() reaches only the members that run when it is called. Later members would never leave.
  if (is_leaving_ && !is_running) {
    drop_preparations(request.job);
    return reply(requester, wire::Refused{leaving_reason});
  }
  join_attempts_[request.job] = now();  // so that try_to_join() does not join this job, too
  start_job(request.job, request.initial_configuration, std::nullopt,
            [this, requester, id = request.job](const Result<void>& started) {
              if (!started)
                drop_preparations(id);  // so that a late copy of the request starts nothing
              reply(requester, started ? wire::ReplyBody{wire::Done{}}
                                       : wire::ReplyBody{wire::Refused{started.error().message}});
            });
}

void ClusterNode::Impl::start_job(JobId id, const core::ConfigurationPtr& configuration,
                                  std::optional<std::chrono::milliseconds> joined_job_age,
                                  LocalJob::OnStarted on_started) {
  if (const auto starting = starting_.find(id); starting != starting_.end())
    return starting->second.push_back(std::move(on_started));
  if (find(id)) return on_started({});
  auto made = make_job(id, configuration, joined_job_age);
  if (!made) return on_started(std::move(made).error());
  JobPtr job = *std::move(made);
  // Called on a thread of the job. Captures the id, because the job may be destroyed before the
  // loop runs the work.
  auto finish = [this, id](const Result<void>& started) {
    loop_.post([this, id, started] { finish_start(id, started); });
  };
  auto begun = catch_errors([&] {
    return joined_job_age ? job->join(configuration, options_.workers, random_, finish)
                          : job->bootstrap(configuration, finish);
  });
  if (!begun) {
    reaper_->destroy(std::move(job));
    return on_started(begun);
  }
  {
    const std::unique_lock lock{state_mutex_};
    jobs_[id] = std::move(job);
  }
  starting_[id] = {[this, id, is_joining = joined_job_age.has_value()](const auto& started) {
                     if (started) log_start(id, is_joining);
                   },
                   std::move(on_started)};
  loop_.post_after(options_.on_start_max, [this, id] {
    finish_start(id,
                 Error{"on_start has not returned within " + print_duration(options_.on_start_max) +
                       "; valid: to spawn actors and return"});
  });
}

void ClusterNode::Impl::log_start(JobId id, bool is_joining) {
  log_for_job(id, is_joining ? "joining" : "begins");
  const std::string note = find(id)->prepared().resume_note();
  if (!is_joining && !note.empty()) log_for_job(id, note);
}

void ClusterNode::Impl::finish_start(JobId id, const Result<void>& started) {
  const auto callbacks = starting_.extract(id);
  if (!callbacks) return;
  if (started)
    find(id)->local().start_members();
  else
    destroy_job(id);
  for (const auto& on_started : callbacks.mapped()) on_started(started);
}

Result<ClusterNode::Impl::JobPtr> ClusterNode::Impl::make_job(
    JobId id, const core::ConfigurationPtr& configuration,
    std::optional<std::chrono::milliseconds> joined_job_age) {
  const auto prepared = prepared_.find(id);
  const auto* slot = job_slots_.find(id);
  if (!prepared || slot == nullptr) return Error{"the job was not prepared here"};
  if (!configuration || (!joined_job_age && configuration->epoch != 1) ||
      !core::is_valid(configuration, LocalJobOptions::members_max) ||
      configuration->ranges.size() != placed_ranges(prepared->options(), prepared->ranges()) ||
      configuration->coordinator.has_value() !=
          core::keeps_steps_centrally(prepared->options().mode))
    return Error{"the job's configuration does not fit the job"};
  wire::JobSettings settings = slot->settings;
  if (const std::string model = prepared->model();
      !model.empty() && actor::setting_of(settings, "model").empty())
    settings.emplace_back("model", model);
  return std::make_shared<ClusterJob>(
      id, id_, std::move(settings), slot->client, prepared,
      joined_job_age.value_or(std::chrono::milliseconds{}),
      [this](NodeId node, wire::TrafficClass traffic_class, std::span<wire::Frame> frames) {
        send_frames(node, traffic_class, frames);
      },
      [this, id] { loop_.post([this, id] { stop_everywhere(id); }); },
      [this, name = actor::name_of(slot->settings, id)](const std::string& line) {
        log_buffer_.add(line, name);
      });
}

void ClusterNode::Impl::stop_everywhere(JobId id) {
  const JobPtr job = find(id);
  if (!job) return;
  job->stop(false);
  std::set<NodeId> others;
  for (const core::Member& member : job->configuration()->members)
    if (member.node != id_) others.insert(member.node);
  for (const NodeId node : others) stop_at(node, id);
}

void ClusterNode::Impl::stop_at(NodeId node, JobId id) {
  const JobPtr job = find(id);
  if (!job) return;
  const core::ConfigurationPtr configuration = job->configuration();
  std::string address;
  nodes_.visit(node, [&](const auto& record) { address = record.address; });
  const bool has_member = std::ranges::any_of(
      configuration->members, [&](const core::Member& member) { return member.node == node; });
  if (address.empty() || !has_member) return;
  ask({node, address}, wire::StopJob{id}, stop_timeout, [this, node, id](const auto& reply) {
    // Asks again: the node may be slow, or may not have started the job yet.
    if (!reply || !std::holds_alternative<wire::Done>(*reply))
      loop_.post_after(stop_retry_delay, [this, node, id] { stop_at(node, id); });
  });
}

void ClusterNode::Impl::reuse_preparations(JobId previous_id, JobId new_id) {
  prepared_.change_id(previous_id, new_id);
  job_slots_.change_id(previous_id, new_id);
  tear_down(previous_id);
}

void ClusterNode::Impl::tear_down(JobId id) {
  closed_jobs_[id] = now();
  if (!find(id)) return;
  log_for_job(id, "closed");
  if (starting_.contains(id))
    finish_start(id, Error{closed_reason});
  else
    destroy_job(id);
}

void ClusterNode::Impl::destroy_job(JobId id) {
  evaluations_.forget(id);
  JobPtr job = find(id);
  {
    const std::unique_lock lock{state_mutex_};
    jobs_.erase(id);
  }
  reaper_->destroy(std::move(job));  // waits for the user's actors, which may take long to end
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::GetJob& request) {
  const JobPtr job = find(request.job);
  if (!job) return reply(requester, refuse_unknown(request.job));
  reply(requester, job->description());
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::ReadRanges& request) {
  const JobPtr job = find(request.job);
  if (!job) return reply(requester, refuse_unknown(request.job));
  job->read_ranges(
      request.first_range, request.with_optimizer_state, [this, requester](wire::Ranges ranges) {
        loop_.post([this, requester, ranges = std::move(ranges)] { reply(requester, ranges); });
      });
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::PauseJob& request) {
  const JobPtr job = find(request.job);
  if (!job) return reply(requester, refuse_unknown(request.job));
  job->local().pause(std::min(std::chrono::milliseconds{request.milliseconds}, pause_max));
  reply(requester, wire::Done{});
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::SubmitJob& request) {
  if (submissions_.answer_if_known(requester, request.job)) return;
  if (is_leaving_) return reply(requester, wire::Refused{leaving_reason});
  if (auto may_submit = job_slots_.check_quota(requester.client); !may_submit)
    return reply(requester, wire::Refused{"node " + name_ + " " + may_submit.error().message});
  if (auto is_free =
          job_slots_.check_name(actor::setting_of(request.settings, "name"), request.job);
      !is_free)
    return reply(requester, wire::Refused{.why = "node " + name_ + " " + is_free.error().message,
                                          .is_name_taken = true});
  // submit() copies the settings for each node, so settings that are too large are refused before.
  if (auto valid = PreparedJobs::check_settings(request.settings); !valid)
    return reply(requester, wire::Refused{valid.error().message});
  if (submissions_.open_count() >= options_.limits.jobs)
    return reply(
        requester,
        wire::Refused{"node " + name_ + " is starting " + std::to_string(options_.limits.jobs) +
                      " jobs, the most that it may; try again when one of them has begun"});
  const auto nodes = live_nodes();
  submissions_.submit(requester, request, requester.client, nodes);
  log_buffer_.add("submitted by " + requester.client + "; " + print_count(nodes.size(), "node"),
                  actor::name_of(request.settings, request.job));
}

void ClusterNode::Impl::answer(const Requester& requester, const wire::LeaveCluster&) {
  if (!is_asked_to_leave_.exchange(true))
    log("asked to leave by " + wire::without_key(requester.address));
  reply(requester, wire::Done{});
}

/// Sends no reply, because the requester closes its connection.
void ClusterNode::Impl::answer(const Requester& requester, const wire::Disconnect&) {
  endpoint_->forget(requester.address);
}

}  // namespace starling::actor
