#include "starling/actor/cluster/local_job.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "starling/actor/cluster/event_loop.hpp"
#include "starling/actor/cluster/local_job_actors.hpp"
#include "starling/actor/job/member_handles.hpp"
#include "starling/actor/job/member_host.hpp"
#include "starling/actor/job/training_options.hpp"
#include "starling/actor/system.hpp"

namespace starling::actor {
namespace {

/// The incarnation of the members that a job starts with.
constexpr core::Incarnation founders_incarnation = 1;

std::vector<core::RangeState> set_founders_incarnation(std::vector<core::RangeState> states) {
  for (core::RangeState& state : states)
    for (core::LedgerEntry& entry : state.ledger) entry.incarnation = founders_incarnation;
  return states;
}

/// The most bytes of received tensors that may wait in mailboxes. Further packets are dropped, and
/// their senders send them again.
constexpr std::size_t mailbox_bytes_max = std::size_t{64} << 20U;
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
            set_founders_incarnation(std::move(assignment_.initial_states)))),
        config_(options_.control_threads > 0
                    ? options_.control_threads
                    : std::max(1U, std::thread::hardware_concurrency() / 2),
                ThreadPriority::members),
        system_(config_) {
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
    messenger_.close();
    job_context_->pool->close();
    for_each_member([](const MemberActor& member) { actor::post(member, actor::quit_atom_v); });
    {
      const std::lock_guard lock{mutex_};
      members_.clear();
      not_started_.clear();
    }
    for (const caf::actor_addr& address : handles_)
      if (const auto handle = caf::actor_cast<caf::actor>(address))
        caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
    actor::await_actors(system_, options_.log);
  }

  LocalJobImpl(const LocalJobImpl&) = delete;
  LocalJobImpl& operator=(const LocalJobImpl&) = delete;

  Result<void> start_own_actors(const core::ConfigurationPtr& configuration) override {
    if (!assignment_.job.on_start) return {};
    const actor::CafThreadScope scope;
    auto actors = std::make_shared<JobActors>();
    for (const core::Member& member : configuration->members) {
      if (!member.works && !member.owns) continue;
      const MemberHandle handle = spawn_handle(member.id);
      if (member.works) actors->workers.push_back(handle);
      if (member.owns) actors->owners.push_back(handle);
    }
    actors->model = spawn_handle(std::nullopt);
    if (configuration->coordinator) actors->coordinator = spawn_handle(std::nullopt);
    actors->job = system_.spawn<JobStopper>(options_.stop_job);
    handles_.push_back(caf::actor_cast<caf::actor_addr>(actors->job));
    const auto fault = run_catching([&] { assignment_.job.on_start(actors, system_); });
    if (fault) return Error{"on_start: " + *fault};
    return {};
  }

  void add_founders(const std::vector<core::Member>& local_members,
                    const core::ConfigurationPtr& first) override {
    for (const core::Member& member : local_members) spawn(member, first, {});
  }
  void add_joiner(const core::Member& self, const std::vector<core::MemberId>& seeds) override {
    spawn(self, nullptr, seeds);
  }
  void start_members() override {
    std::vector<MemberActor> added;
    {
      const std::lock_guard lock{mutex_};
      added.swap(not_started_);
    }
    messenger_.post([added = std::move(added)] {
      for (const MemberActor& member : added) actor::post(member, actor::start_atom_v);
    });
  }

  void deliver(core::Envelope envelope, bool may_handle_inline) override {
    const std::size_t bytes =
        envelope.packet.payload ? core::payload_bytes(*envelope.packet.payload) : 0;
    // CAF does not bound mailboxes.
    const std::size_t waiting = waiting_bytes_->load();
    if (waiting > 0 && bytes > 0 && waiting + bytes > mailbox_bytes_max) return;
    const MemberActor member = find(envelope.to);
    if (!member) return;
    *waiting_bytes_ += bytes;
    actor::EnvelopePtr counted{new core::Envelope{std::move(envelope)},
                               [waiting = waiting_bytes_, bytes](const core::Envelope* handled) {
                                 *waiting -= bytes;
                                 delete handled;
                               }};
    if (may_handle_inline)
      actor::post_and_run(member, std::move(counted));
    else
      actor::post(member, std::move(counted));
  }

  void report_liveness(const actor::LivenessUpdate& update) override {
    post_to_members([update](const MemberActor& member) { actor::post(member, update); });
  }
  void stop() override {
    post_to_members([](const MemberActor& member) {
      actor::post(member, actor::skip_delays_atom_v);
      actor::post(member, core::Stop{});
    });
  }
  void pause(core::Time duration) override {
    for (const LocalMember& member : all_members()) {
      member.last_report->count_pause();
      messenger_.post(
          [actor = member.actor, duration] { actor::post(actor, actor::Pause{duration}); });
    }
  }
  void leave() override {
    post_to_members([](const MemberActor& member) {
      actor::post(member, actor::skip_delays_atom_v);
      actor::post(member, actor::leave_atom_v);
    });
  }

  void end_members(const std::vector<core::MemberId>& members) override {
    for (const core::MemberId id : members) {
      MemberActor removed;
      {
        const std::lock_guard lock{mutex_};
        const auto member = members_.find(id);
        if (member == members_.end()) continue;
        removed = member->second.actor;
        members_.erase(member);
      }
      messenger_.post([removed] { actor::post(removed, actor::quit_atom_v); });
    }
  }

  std::vector<actor::MemberReport> reports() override {
    std::vector<actor::MemberReport> reports;
    std::vector<MemberActor> asked;
    for (const LocalMember& member : all_members()) {
      reports.push_back(member.last_report->get());
      if (member.last_report->begin_question()) asked.push_back(member.actor);
    }
    if (!asked.empty())
      messenger_.post([asked = std::move(asked)] {
        for (const MemberActor& member : asked) actor::post(member, actor::report_atom_v);
      });
    return reports;
  }

  core::ConfigurationPtr configuration() override {
    core::ConfigurationPtr latest;
    for (const LocalMember& member : all_members()) {
      const auto known = member.last_report->configuration();
      if (known && (!latest || known->epoch > latest->epoch)) latest = known;
    }
    return latest;
  }

  TraceBuffer::Part read_trace(std::uint64_t from) override {
    return job_context_->trace_buffer->read(from);
  }
  core::Time now() override { return job_context_->now(); }

  void read_ranges(const actor::ReadRanges& request,
                   std::function<void(std::vector<core::RangeState>)> on_read) override {
    std::vector<MemberActor> members;
    for (const LocalMember& member : all_members()) members.push_back(member.actor);
    messenger_.post([this, members = std::move(members), request, on_read = std::move(on_read)] {
      const actor::CafThreadScope scope;
      system_.spawn<RangeReader>(members, request, on_read);
    });
  }

 private:
  /// Spawns a member's actor. A founder gets the first configuration; a joining member gets null,
  /// and the ids of the members that it asks.
  void spawn(const core::Member& self, const core::ConfigurationPtr& first,
             const std::vector<core::MemberId>& seeds) {
    const JobOptions& job = assignment_.job;
    core::TrainingOptions training =
        training_options(job, *assignment_.task, assignment_.applier, layout_, initial_states_);
    training.exchange.window =
        std::clamp<std::size_t>(credit_bytes / core::range_bytes_max / job.workers, 1, 64);
    training.deal = assignment_.deal;
    core::MemberOptions member_options;
    member_options.self = self;
    member_options.role = std::make_shared<const core::TrainingOptions>(std::move(training));
    member_options.members_max = static_cast<core::MemberId>(options_.members_max);
    member_options.first_configuration = first;
    member_options.seeds = seeds;
    member_options.council.replication_factor = job.replication_factor;
    member_options.council.owners = requested_owner_count(job);
    member_options.council.give_up_after = job.wait_for_nodes;
    // Twice the node's own limit: a node without a majority gives the job up first, and logs which
    // nodes it waited for.
    member_options.council.stuck_after = 2 * job.wait_for_nodes;
    // Longer times than in a simulation: with real clocks and threads, an acknowledgement may be
    // late, and its message must not be sent twice because of that.
    member_options.channel.resend_initial = std::chrono::milliseconds{200};
    member_options.channel.resend_min = std::chrono::milliseconds{50};
    member_options.channel.acknowledge_delay_max = std::chrono::milliseconds{10};
    const auto last_report = std::make_shared<LastReport>(self);
    const actor::CafThreadScope scope;
    const MemberActor member = system_.spawn<MemberHost>(
        job_context_, std::move(member_options),
        std::make_shared<const NodeCallbacks>(NodeCallbacks{
            .send = [this](std::vector<core::Envelope> envelopes) { send(std::move(envelopes)); },
            .on_excluded = [last_report] { last_report->is_excluded = true; },
            .report_exception = [last_report](const std::string& why) { last_report->fail(why); },
            .publish =
                [last_report](actor::MemberReport report, core::ConfigurationPtr configuration) {
                  last_report->update(std::move(report), std::move(configuration));
                }}));
    const std::lock_guard lock{mutex_};
    members_[self.id] = {member, last_report};
    not_started_.push_back(member);
  }

  /// Spawns the actor that asks `member` or, if that is absent, the member in charge.
  MemberHandle spawn_handle(std::optional<core::MemberId> member) {
    const MemberHandle handle = system_.spawn<RemoteMember>(member, [this] { return find_any(); });
    handles_.push_back(caf::actor_cast<caf::actor_addr>(handle));
    return handle;
  }

  /// Returns a member here that asks the questions of own actors: one that is in the job or, if
  /// there is none, one that joins, which asks them when it has joined. The handle may be empty.
  MemberActor find_any() {
    using State = actor::MemberReport::State;
    MemberActor joining;
    for (const LocalMember& member : all_members()) {
      const State state = member.last_report->get().state;
      if (member.last_report->is_excluded || state == State::failed) continue;
      if (state != State::joining) return member.actor;
      joining = member.actor;
    }
    return joining;
  }

  /// Returns the member here with this id, or an empty handle. Ignores excluded members, because a
  /// member on another node may have the same id.
  MemberActor find(core::MemberId id) {
    const std::lock_guard lock{mutex_};
    const auto member = members_.find(id);
    return member == members_.end() || member->second.last_report->is_excluded
               ? MemberActor{}
               : member->second.actor;
  }

  void send(std::vector<core::Envelope> envelopes) {
    std::vector<core::Envelope> remote;
    for (core::Envelope& envelope : envelopes)
      if (const MemberActor member = find(envelope.to))
        actor::post(member, std::make_shared<const core::Envelope>(std::move(envelope)));
      else
        remote.push_back(std::move(envelope));
    if (!remote.empty() && options_.send) options_.send(std::move(remote));
  }

  /// A member's last report, which is known even if its actor has ended.
  class LastReport {
   public:
    explicit LastReport(const core::Member& self) {
      report_.member = self.id;
      report_.incarnation = self.incarnation;
    }

    void update(actor::MemberReport report, core::ConfigurationPtr configuration) {
      const std::lock_guard lock{mutex_};
      is_asked_ = false;
      configuration_ = std::move(configuration);
      if (report_.state != actor::MemberReport::State::failed) report_ = std::move(report);
    }
    void fail(const std::string& why) {
      const std::lock_guard lock{mutex_};
      report_.state = actor::MemberReport::State::failed;
      report_.why = why;
    }
    /// A Pause is sent: until the member has handled it, it does not count as paused.
    void count_pause() {
      const std::lock_guard lock{mutex_};
      ++pauses_sent_;
    }
    /// Returns false if the member has not answered the last question yet.
    [[nodiscard]] bool begin_question() {
      const std::lock_guard lock{mutex_};
      return !std::exchange(is_asked_, true);
    }
    [[nodiscard]] actor::MemberReport get() const {
      const std::lock_guard lock{mutex_};
      actor::MemberReport report = report_;
      report.is_paused = report.is_paused && report.pauses == pauses_sent_;
      return report;
    }
    [[nodiscard]] core::ConfigurationPtr configuration() const {
      const std::lock_guard lock{mutex_};
      return configuration_;
    }

    std::atomic<bool> is_excluded = false;

   private:
    mutable std::mutex mutex_;
    actor::MemberReport report_;
    core::ConfigurationPtr configuration_;
    std::uint64_t pauses_sent_ = 0;
    bool is_asked_ = false;
  };
  struct LocalMember {
    MemberActor actor;
    std::shared_ptr<LastReport> last_report;
  };

  [[nodiscard]] std::vector<LocalMember> all_members() {
    const std::lock_guard lock{mutex_};
    std::vector<LocalMember> all;
    for (const auto& [id, member] : members_) all.push_back(member);
    return all;
  }

  template <class F>
  void for_each_member(F f) {
    for (const LocalMember& member : all_members()) f(member.actor);
  }
  template <class F>
  void post_to_members(F post) {
    messenger_.post([this, post] { for_each_member(post); });
  }

  Assignment assignment_;
  LocalJobOptions options_;
  std::shared_ptr<const core::Layout> layout_;
  std::shared_ptr<const std::vector<core::RangeState>> initial_states_;
  JobContextPtr job_context_ = std::make_shared<JobContext>();
  actor::Config config_;
  caf::actor_system system_;
  /// The actors of the JobActors that on_start got.
  std::vector<caf::actor_addr> handles_;
  std::mutex mutex_;
  std::map<core::MemberId, LocalMember> members_;
  std::vector<MemberActor> not_started_;
  std::shared_ptr<std::atomic<std::size_t>> waiting_bytes_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  /// Posts to members what the node's event loop tells them. The loop itself must not, because CAF
  /// takes a lock to wake an actor: if a thread of the job holds it when it loses its processor,
  /// the loop would wait until that thread has one again (measured: 50 to 90 ms with 20 busy jobs).
  EventLoop messenger_{ThreadPriority::members};
};

}  // namespace

Result<std::unique_ptr<LocalJob>> make_local_job(Assignment assignment, LocalJobOptions options) {
  if (auto valid = check(assignment.job); !valid) return std::move(valid).error();
  if (auto valid = check_initial_states(assignment.job, assignment.initial_states); !valid)
    return std::move(valid).error().within("the saved state");
  if (assignment.job.workers > options.members_max)
    return Error{"workers=" + std::to_string(assignment.job.workers) + ": at most " +
                 std::to_string(options.members_max) + " members are allowed for"};
  keep_freed_memory();
  return std::unique_ptr<LocalJob>{
      std::make_unique<LocalJobImpl>(std::move(assignment), std::move(options))};
}

}  // namespace starling::actor
