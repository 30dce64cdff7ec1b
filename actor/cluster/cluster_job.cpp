#include "starling/actor/cluster/cluster_job.hpp"

#include <algorithm>
#include <utility>

#include "starling/base/utc.hpp"
#include "starling/engine/core/member/message_validator.hpp"

namespace starling::actor {

Result<void> ClusterJob::bootstrap(const core::ConfigurationPtr& configuration,
                                   LocalJob::OnStarted on_started) {
  if (auto made = make_local_job(configuration); !made) return made;
  std::vector<core::Member> local_members;
  for (const core::Member& member : configuration->members)
    if (member.node == node_) local_members.push_back(member);
  for (const core::Member& member : local_members) remember_own_member(member);
  local_->add_initial_members(local_members, configuration);
  local_->start_user_actors(configuration, std::move(on_started));
  return {};
}

Result<void> ClusterJob::join(const core::ConfigurationPtr& configuration, std::size_t workers,
                              Random& random, LocalJob::OnStarted on_started) {
  if (auto made = make_local_job(configuration); !made) return made;
  add_joiners(members_of_joining_node(prepared_->options().mode, node_, workers), random);
  local_->start_user_actors(configuration, std::move(on_started));
  return {};
}

Result<void> ClusterJob::make_local_job(const core::ConfigurationPtr& configuration) {
  set_routes(*configuration);
  LocalJobOptions options;
  options.send = [this](const std::vector<core::Envelope>& envelopes) { send(envelopes); };
  options.stop_job = stop_job_;
  options.log = log_;
  auto local = prepared_->make_local_job(std::move(options));
  if (!local) return std::move(local).error();
  const std::lock_guard lock{mutex_};
  local_ = *std::move(local);
  configuration_ = configuration;
  return {};
}

void ClusterJob::rejoin(const std::vector<core::MemberId>& excluded, Random& random) {
  std::vector<core::Member> members;
  {
    const std::lock_guard lock{mutex_};
    for (const core::MemberId id : excluded)
      if (const auto own = own_members_.find(id); own != own_members_.end())
        members.push_back(own->second);
  }
  add_joiners(std::move(members), random);
  local_->start_members();
}

void ClusterJob::deliver(wire::NodeId node, core::Envelope envelope, bool may_handle_inline) {
  if (envelope.from >= LocalJobOptions::members_max) return;
  LocalJob* local = nullptr;
  {
    const std::lock_guard lock{mutex_};
    // Only a joining member's packets show its node. Two joining members may have the same id, but
    // not also the same incarnation. A member's packets from another node are dropped.
    const core::Member* sender = configuration_ ? configuration_->find(envelope.from) : nullptr;
    const core::Incarnation incarnation = envelope.packet.from;
    const bool is_member = sender != nullptr && sender->incarnation == incarnation;
    if (is_member && sender->node != node) return;
    if (sender == nullptr) routes_[envelope.from] = node;
    if (joiner_routes_.size() >= joiner_routes_max) joiner_routes_.clear();
    if (!is_member) joiner_routes_[{envelope.from, incarnation}] = node;
    local = local_.get();
  }
  if (local != nullptr) local->deliver(std::move(envelope), may_handle_inline);
}

void ClusterJob::stop(bool is_done) {
  if (state_ == wire::JobState::running)
    state_ = is_done ? wire::JobState::done : wire::JobState::stopped;
  local_->stop();
}

void ClusterJob::update_progress(const std::vector<actor::MemberReport>& reports) {
  const auto& time = prepared_->options().time;
  if (time && age() > *time + stop_grace) stop(true);
  // A member ignores a stop while it joins, so the stop is repeated here.
  if (state_ != wire::JobState::running) local_->stop();
  RecentFigures::Counts counts;
  for (const auto& report : reports) {
    counts.updates += report.worker.updates;
    counts.losses += report.worker.loss_count;
    counts.loss_sum += report.worker.loss_sum;
    record_report({report.member, report.incarnation}, report.worker.step, report.worker.updates);
  }
  for (const auto& report : reports)
    for (const core::WorkerProgress& worker : report.departed) record_departed(worker);
  recent_.add(Clock::now() - began_at_, counts);
  if (counts.updates > std::exchange(updates_, counts.updates)) job_age_at_last_step_ = age();
}

std::vector<std::string> ClusterJob::new_failures(const std::vector<actor::MemberReport>& reports) {
  std::vector<std::string> failures;
  for (const auto& report : reports)
    if (report.state == actor::MemberReport::State::failed && failures_.insert(report.why).second)
      failures.push_back(report.why);
  return failures;
}

std::optional<std::string> ClusterJob::new_end_line(const wire::JobSummary& summary) {
  constexpr std::size_t why_max = 500;
  std::string line = summary.state == wire::JobState::failed    ? "ended: failed"
                     : summary.state == wire::JobState::stopped ? "ended: stopped"
                                                                : "ended: done";
  if (!summary.why.empty()) line += ": " + summary.why.substr(0, why_max);
  if (line == last_end_line_) return std::nullopt;
  return last_end_line_ = line;
}

std::optional<std::string> ClusterJob::new_end_line_of_flow(
    const std::vector<actor::MemberReport>& reports) {
  const auto done =
      std::ranges::count(reports, actor::MemberReport::State::done, &actor::MemberReport::state);
  if (setting_of(settings_, "flow").empty() || reports.empty() || done < std::ssize(reports))
    return std::nullopt;
  return new_end_line({state_ == wire::JobState::stopped ? state_ : wire::JobState::done});
}

void ClusterJob::record_report(const core::MemberIncarnation& worker, core::Step step,
                               std::uint64_t updates) {
  if (step == 0) return;  // no worker, or one that does not know yet at which step it begins
  WorkerCount& count = workers_[worker];
  count.first_step = step - updates;
  count.updates = std::max(count.updates, updates);
}

void ClusterJob::record_departed(const core::WorkerProgress& departed) {
  WorkerCount& count = workers_[departed.worker];
  if (!count.first_step) {
    // The worker died before any report of it came here. In a job without `resume`, an initial
    // member began at step 0. The first step of others is unknown: their updates so far count as 0.
    const bool began_at_0 = departed.worker.incarnation == 1 &&
                            departed.worker.id < prepared_->options().workers &&
                            setting_of(settings_, "resume").empty();
    count.first_step = began_at_0 ? core::Step{0} : departed.step;
  }
  if (departed.step > *count.first_step)
    count.updates = std::max<std::uint64_t>(count.updates, departed.step - *count.first_step);
}

void ClusterJob::merge_status(const wire::JobStatus& remote) {
  // Members here that failed in a partition get no later configuration; `remote` may have one.
  if (core::may_follow(*configuration(), remote.configuration, LocalJobOptions::members_max))
    adopt_if_later(remote.configuration);
  const auto may_add = [&](const core::MemberIncarnation& worker) {
    return workers_.size() < workers_known_max || workers_.contains(worker);
  };
  for (const wire::MemberStatus& member : remote.local_members) {
    const core::MemberIncarnation worker{member.member, member.incarnation};
    if (may_add(worker)) record_report(worker, member.step, std::min(member.updates, member.step));
  }
  for (const wire::WorkerUpdates& known : remote.counts.other_workers) {
    if (!may_add(known.worker)) continue;
    std::uint64_t& updates = workers_[known.worker].updates;
    updates = std::max(updates, known.updates);
  }
  // If the nodes that run the job have given it up, they will never admit members that join here.
  const auto reports = local_->reports();
  const bool has_only_joiners = std::ranges::all_of(reports, [](const auto& report) {
    return report.state == actor::MemberReport::State::joining;
  });
  if (has_only_joiners && !remote.give_up_reason.empty() && !give_up_epoch_)
    give_up(remote.give_up_reason);
}

void ClusterJob::give_up(std::string reason) {
  give_up_epoch_ = configuration()->epoch;
  give_up_reason_ = std::move(reason);
  local_->stop();
}

core::ConfigurationPtr ClusterJob::refresh_configuration() {
  if (auto latest = local_->configuration()) adopt_if_later(std::move(latest));
  return configuration();
}

wire::JobStatus ClusterJob::status() {
  wire::JobStatus status{.job = id_,
                         .settings = settings_,
                         .local_members = {},
                         .configuration = refresh_configuration(),
                         .last_step_ms = static_cast<std::uint64_t>(job_age_at_last_step_.count()),
                         .client = client_,
                         .blocked_reason = blocked_reason_};
  // If the epoch is later, other nodes have gone on, and may let this node's members join again.
  if (give_up_epoch_ == status.configuration->epoch) status.give_up_reason = give_up_reason_;
  for (const auto& report : local_->reports()) {
    // A job that was given up admits nobody any more.
    if (!status.give_up_reason.empty() && report.state == actor::MemberReport::State::joining)
      continue;
    const Report& worker = report.worker;
    status.local_members.push_back(
        {.member = report.member,
         .incarnation = report.incarnation,
         .state = static_cast<std::uint8_t>(report.state),
         .why = report.why,
         .step = worker.step,
         .samples = worker.samples,
         .waited_ns = worker.wait_time.count(),
         .active_ns = worker.active_time.count(),
         .loss_sum = worker.loss_sum,
         .loss_count = worker.loss_count,
         .draws = {worker.draws, worker.passes, worker.times_drawn, worker.tuned},
         .reads = worker.reads,
         .is_paused = report.is_paused,
         .ranges_held = report.ranges_held,
         .deal = worker.deal,
         .updates = worker.updates,
         .copy_hash = report.copy_hash});
  }
  status.counts.ranges = static_cast<std::uint32_t>(prepared_->ranges());
  status.counts.updates_before = prepared_->updates_in_checkpoint();
  for (const auto& [worker, count] : workers_) {
    const auto is_worker = [&worker = worker](const wire::MemberStatus& member) {
      return core::MemberIncarnation{member.member, member.incarnation} == worker;
    };
    if (count.updates > 0 && std::ranges::none_of(status.local_members, is_worker))
      status.counts.other_workers.push_back({worker, count.updates});
  }
  const JobOptions& options = prepared_->options();
  status.state = state_;
  status.age_ms = static_cast<std::uint64_t>(age().count());
  status.steps_total = options.steps == barrier::unlimited ? 0 : options.steps;
  core::Step end_step = 0;  // the workers' last step by the latest deal; 0 without a deal
  for (const wire::MemberStatus& member : status.local_members)
    end_step = std::max(end_step, member.deal.last_step.value_or(0));
  if (end_step > 0 && end_step < barrier::unlimited) status.steps_total = end_step;
  status.steps_per_data_epoch = prepared_->steps_per_data_epoch();
  if (options.time)
    status.time_limit_ms = static_cast<std::uint64_t>(*options.time / std::chrono::milliseconds{1});
  status.updates_per_s = recent_.updates_per_s();
  status.loss = recent_.loss();
  status.loss_count = recent_.loss_count();
  return status;
}

wire::JobRecord ClusterJob::record(const std::optional<wire::JobSummary>& summary) {
  const wire::JobStatus current = status();
  wire::JobRecord record;
  record.job = id_;
  record.name = name();
  record.description = summary_of(settings_);
  record.client = client_;
  record.ended_at_ms = utc_now_us() / 1000;
  record.began_at_ms = record.ended_at_ms - age().count();
  record.steps_total = current.steps_total;
  record.updates_before = current.counts.updates_before;
  record.workers = current.counts.other_workers;
  for (const wire::MemberStatus& member : current.local_members) {
    record.workers.push_back({{member.member, member.incarnation}, member.updates});
    if (member.incarnation == 1 || member.updates > 0)  // else it may have joined at the end
      record.step_max = std::max(record.step_max, member.step);
  }
  record.is_reported_by_client = summary.has_value();
  record.summary = summary ? *summary : outcome_of(current);
  return record;
}

wire::JobDescription ClusterJob::description() {
  wire::JobDescription description{settings_,
                                   static_cast<std::uint32_t>(prepared_->options().workers),
                                   refresh_configuration(),
                                   static_cast<std::uint64_t>(age().count()),
                                   client_,
                                   prepared_->options().former_deals,
                                   prepared_->updates_in_checkpoint()};
  description.data_fingerprint = prepared_->data_fingerprint();
  description.steps_before = prepared_->steps_in_checkpoint();
  for (const auto& report : local_->reports())
    if (report.deal && (!description.deal || report.deal->number > description.deal->number))
      description.deal = *report.deal;
  return description;
}

void ClusterJob::read_ranges(core::RangeId from, bool with_slots_and_ledger,
                             std::function<void(wire::Ranges)> on_read) {
  constexpr std::size_t bytes_max = std::size_t{4} << 20U;
  constexpr std::size_t head_bytes = 64;  // of a RangeState without values, slots and ledger
  local_->read_ranges({from, bytes_max}, [with_slots_and_ledger, on_read = std::move(on_read)](
                                             std::vector<core::RangeState> all) {
    wire::Ranges reply;
    std::size_t bytes = 0;
    std::ranges::sort(all, {}, &core::RangeState::range);
    for (auto& state : all) {
      if (!with_slots_and_ledger) {
        state.slots = {};
        state.ledger.clear();
      }
      bytes += head_bytes + state.ledger.size() * sizeof(core::LedgerEntry) +
               state.value.bytes().size() + state.slots.bytes().size();
      reply.states.push_back(std::move(state));
      if (bytes < bytes_max) continue;
      reply.next = reply.states.back().range + 1;
      break;
    }
    on_read(std::move(reply));
  });
}

wire::TraceIntervals ClusterJob::trace(std::uint64_t from) {
  const auto in_ns = [](core::Time time) {
    return static_cast<std::uint64_t>(std::max(core::Time{}, time).count());
  };
  TraceBuffer::Part part = local_->read_trace(from);
  wire::TraceIntervals reply{node_, in_ns(local_->now()), part.first, {}};
  reply.intervals.reserve(part.intervals.size());
  for (const auto& [worker, interval] : part.intervals)
    reply.intervals.push_back({worker, in_ns(interval.from), in_ns(interval.to - interval.from),
                               interval.step, interval.awaited,
                               static_cast<std::uint8_t>(interval.activity)});
  return reply;
}

wire::JobSummary ClusterJob::outcome_of(const wire::JobStatus& status) {
  using State = actor::MemberReport::State;
  if (!status.give_up_reason.empty()) return {wire::JobState::failed, status.give_up_reason};
  bool all_done = true;
  for (const wire::MemberStatus& member : status.local_members) {
    if (member.state == static_cast<std::uint8_t>(State::failed))
      return {wire::JobState::failed, member.why};
    all_done = all_done && member.state == static_cast<std::uint8_t>(State::done);
  }
  if (status.state != wire::JobState::running) return {status.state};
  if (all_done) return {wire::JobState::done};
  return {wire::JobState::stopped, "closed before its workers were done"};
}

bool ClusterJob::are_workers_done(const std::vector<actor::MemberReport>& reports) {
  const std::lock_guard lock{mutex_};
  bool has_workers = false;
  for (const auto& report : reports) {
    const auto own = own_members_.find(report.member);
    if (own == own_members_.end() || !own->second.works) continue;
    has_workers = true;
    if (report.state != actor::MemberReport::State::done) return false;
  }
  return has_workers;
}

void ClusterJob::add_joiners(std::vector<core::Member> members, Random& random) {
  const auto current = configuration();
  std::vector<core::MemberId> members_to_ask;
  std::vector<core::MemberId> taken_ids;  // of members here, some of which are not admitted yet
  for (const core::Member& other : current->members)
    if (other.node != node_) members_to_ask.push_back(other.id);
  for (const auto& report : local_->reports()) taken_ids.push_back(report.member);
  for (const core::Member& member : assign_member_ids(std::move(members), *current, taken_ids,
                                                      LocalJobOptions::members_max, random)) {
    remember_own_member(member);
    local_->add_joiner(member, members_to_ask);
  }
}

void ClusterJob::remember_own_member(const core::Member& member) {
  const std::lock_guard lock{mutex_};
  own_members_[member.id] = member;
}

void ClusterJob::set_routes(const core::Configuration& configuration) {
  const std::lock_guard lock{mutex_};
  for (const core::Member& member : configuration.members) routes_[member.id] = member.node;
}

void ClusterJob::send(const std::vector<core::Envelope>& envelopes) {
  std::vector<FrameBatch> batches;
  for (const core::Envelope& envelope : envelopes) {
    const auto node = route_to(envelope.to, envelope.packet.to);
    if (!node) continue;
    wire::Frame frame = wire::encode(id_, node_, envelope);
    const auto traffic_class = wire::traffic_class_of(frame);
    auto batch = std::ranges::find_if(batches, [&](const FrameBatch& other) {
      return other.node == *node && other.traffic_class == traffic_class;
    });
    if (batch == batches.end()) batch = batches.insert(batch, FrameBatch{*node, traffic_class});
    batch->frames.push_back(std::move(frame));
  }
  for (FrameBatch& batch : batches) send_frames_(batch.node, batch.traffic_class, batch.frames);
}

std::optional<wire::NodeId> ClusterJob::route_to(core::MemberId member,
                                                 std::optional<core::Incarnation> incarnation) {
  const std::lock_guard lock{mutex_};
  if (incarnation && !(configuration_ && configuration_->contains(member, *incarnation)))
    if (const auto joiner = joiner_routes_.find({member, *incarnation});
        joiner != joiner_routes_.end())
      return joiner->second;
  const auto route = routes_.find(member);
  if (route == routes_.end()) return std::nullopt;
  return route->second;
}

}  // namespace starling::actor
