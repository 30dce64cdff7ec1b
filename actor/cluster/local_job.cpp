#include "starling/actor/cluster/local_job.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include "starling/actor/cluster/local_job_actors.hpp"
#include "starling/actor/cluster/local_members.hpp"
#include "starling/actor/job/member_host.hpp"
#include "starling/actor/job/training_options.hpp"
#include "starling/actor/system.hpp"

namespace starling::actor {
namespace {

/// The incarnation of the members that a job starts with.
constexpr core::Incarnation initial_incarnation = 1;

/// Returns `states` with ledgers for the members that the job starts with: a checkpoint has the
/// incarnations of the members of an earlier run.
std::vector<core::RangeState> set_initial_incarnation(std::vector<core::RangeState> states) {
  for (core::RangeState& state : states)
    for (core::LedgerEntry& entry : state.ledger) entry.incarnation = initial_incarnation;
  return states;
}

/// The most bytes in flight to one owner (pushes), and from it (pulled values). The workers share
/// this credit equally; each may have at least one range in flight.
constexpr std::size_t credit_bytes = std::size_t{64} << 20U;

class LocalJobImpl final : public LocalJob {
 public:
  LocalJobImpl(Assignment assignment, LocalJobOptions options)
      : assignment_(std::move(assignment)),
        options_(std::move(options)),
        layout_(std::shared_ptr<const core::Layout>{assignment_.task, &assignment_.task->layout()}),
        initial_states_(std::make_shared<const std::vector<core::RangeState>>(
            set_initial_incarnation(std::move(assignment_.initial_states)))),
        config_(options_.control_threads > 0
                    ? options_.control_threads
                    : std::max(1U, std::thread::hardware_concurrency() / 2),
                ThreadPriority::members),
        system_(config_) {
    const actor::CafThreadScope scope;  // making system_ has made this thread hold CAF's logger
    const JobOptions& job = assignment_.job;
    job_context_->task = assignment_.task;
    job_context_->pool = std::make_unique<ComputePool>(compute_threads(job));
    job_context_->delay = job.delay;
    job_context_->slowdown_factors = slowdown_factors(job.stragglers, job.workers).value();
    job_context_->seed = job.seed;
    job_context_->trace_buffer = std::make_shared<TraceBuffer>();
    job_context_->clock = &system_.clock();
    job_context_->start = job_context_->clock->now();
  }

  ~LocalJobImpl() override {
    job_context_->pool->close();
    members_.close();
    handles_.end();
    actor::await_actors(system_, options_.log);
  }

  LocalJobImpl(const LocalJobImpl&) = delete;
  LocalJobImpl& operator=(const LocalJobImpl&) = delete;

  void start_user_actors(const core::ConfigurationPtr& configuration,
                         OnStarted on_started) override {
    if (!assignment_.job.on_start) return on_started({});
    members_.run_later([this, configuration, on_started = std::move(on_started)] {
      on_started(call_on_start(configuration));
    });
  }

  void add_initial_members(const std::vector<core::Member>& local_members,
                           const core::ConfigurationPtr& first) override {
    for (const core::Member& member : local_members) spawn(member, first, {});
  }
  void add_joiner(const core::Member& self, const std::vector<core::MemberId>& seeds) override {
    spawn(self, nullptr, seeds);
  }
  void start_members() override { members_.start(); }

  void deliver(core::Envelope envelope, bool may_handle_inline) override {
    members_.deliver(std::move(envelope), may_handle_inline);
  }

  void report_liveness(const actor::LivenessUpdate& update) override {
    members_.post_to_all([update](const MemberActor& member) { actor::post(member, update); });
  }
  void stop() override {
    members_.post_to_all([](const MemberActor& member) {
      actor::post(member, actor::no_delays_atom_v);
      actor::post(member, core::Stop{});
    });
  }
  void pause(core::Time duration) override {
    for (const auto& member : members_.all()) {
      member.last_report->on_pause_sent();
      members_.run_later(
          [actor = member.actor, duration] { actor::post(actor, actor::Pause{duration}); });
    }
  }
  void leave() override {
    members_.post_to_all([](const MemberActor& member) {
      actor::post(member, actor::no_delays_atom_v);
      actor::post(member, actor::leave_atom_v);
    });
  }

  void end_members(const std::vector<core::MemberId>& members) override {
    members_.end_members(members);
  }
  std::vector<actor::MemberReport> reports() override { return members_.reports(); }
  core::ConfigurationPtr configuration() override { return members_.configuration(); }

  TraceBuffer::Part read_trace(std::uint64_t from) override {
    return job_context_->trace_buffer->read(from);
  }
  core::Time now() override { return job_context_->now(); }

  void read_ranges(const actor::ReadRanges& request,
                   std::function<void(std::vector<core::RangeState>)> on_read) override {
    std::vector<MemberActor> members;
    for (const auto& member : members_.all()) members.push_back(member.actor);
    members_.run_later([this, members = std::move(members), request, on_read = std::move(on_read)] {
      const actor::CafThreadScope scope;
      system_.spawn<RangeReader>(members, request, on_read);
    });
  }

 private:
  [[nodiscard]] Result<void> call_on_start(const core::ConfigurationPtr& configuration) {
    const actor::CafThreadScope scope;
    const JobActorsPtr actors = handles_.spawn_all(
        [this, first = configuration] {
          const core::ConfigurationPtr latest = members_.configuration();
          return latest ? latest : first;
        },
        options_.stop_job);
    const auto fault = run_catching([&] { assignment_.job.on_start(actors, system_); });
    if (fault) return Error{"on_start: " + *fault};
    return {};
  }

  /// Spawns a member's actor. An initial member gets the first configuration; a joining member gets
  /// null, and the ids of the members that it asks.
  void spawn(const core::Member& self, const core::ConfigurationPtr& first,
             const std::vector<core::MemberId>& seeds) {
    const JobOptions& job = assignment_.job;
    core::TrainingOptions training =
        training_options(job, *assignment_.task, assignment_.applier, layout_, initial_states_);
    training.exchange.window =
        std::clamp<std::size_t>(credit_bytes / core::range_bytes_max / job.workers, 1, 64);
    training.deal = assignment_.deal;
    core::MemberOptions options =
        member_options(self, first, seeds, options_.members_max, job.wait_for_nodes);
    options.role = std::make_shared<const core::TrainingOptions>(std::move(training));
    options.council.replication_factor = job.replication_factor;
    options.council.owners = requested_owner_count(job);
    const auto last_report = std::make_shared<LastReport>(self);
    const actor::CafThreadScope scope;
    members_.add(self.id,
                 system_.spawn<MemberHost>(job_context_, std::move(options),
                                           members_.callbacks(last_report)),
                 last_report);
  }

  /// Returns a member here that asks other members the questions of the user's own actors: a member
  /// that is in the job or, if there is none, a joining one, which asks the questions when it has
  /// joined. The handle is empty if there is neither.
  MemberActor find_relay() {
    using State = actor::MemberReport::State;
    MemberActor joining;
    for (const auto& member : members_.all()) {
      const State state = member.last_report->get().state;
      if (member.last_report->is_excluded || state == State::failed) continue;
      if (state != State::joining) return member.actor;
      joining = member.actor;
    }
    return joining;
  }

  Assignment assignment_;
  LocalJobOptions options_;
  std::shared_ptr<const core::Layout> layout_;
  std::shared_ptr<const std::vector<core::RangeState>> initial_states_;
  JobContextPtr job_context_ = std::make_shared<JobContext>();
  actor::Config config_;
  caf::actor_system system_;
  LocalMembers<MemberActor> members_{options_.send};
  NodeJobActors handles_{system_, [this] { return find_relay(); }};
};

}  // namespace

Result<std::unique_ptr<LocalJob>> make_local_job(Assignment assignment, LocalJobOptions options) {
  if (auto valid = check(assignment.job); !valid) return std::move(valid).error();
  if (auto valid = check_initial_states(assignment.job, assignment.initial_states); !valid)
    return std::move(valid).error().within("the saved state");
  if (assignment.job.workers > options.members_max)
    return Error{"workers=" + std::to_string(assignment.job.workers) +
                 " is too many; valid: up to " + std::to_string(options.members_max)};
  keep_freed_memory();
  return std::unique_ptr<LocalJob>{
      std::make_unique<LocalJobImpl>(std::move(assignment), std::move(options))};
}

}  // namespace starling::actor
