#include "starling/actor/cluster/local_job.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "starling/actor/cluster/member_host.hpp"
#include "starling/actor/system.hpp"

namespace starling::actor {
namespace {

using actor::MemberActor;

/// The incarnation that founders have.
constexpr core::Incarnation founding_incarnation = 1;

std::vector<core::RangeState> of_founders(std::vector<core::RangeState> start) {
  for (core::RangeState& state : start)
    for (core::LedgerEntry& entry : state.ledger) entry.incarnation = founding_incarnation;
  return start;
}

/// The longest wait for an answer: members answer between two events, and the requester may have
/// others to answer.
constexpr std::chrono::milliseconds answer_within{500};
constexpr std::chrono::milliseconds read_within{2'000};
/// Bytes of received tensors that may wait in mailboxes; more is dropped, and sent again.
constexpr std::size_t mailbox_bytes_max = std::size_t{64} << 20U;
/// An owner holds pushes of so many bytes at most that are not acknowledged, and values for so many
/// that were not taken yet; each worker has its share of it, and one range at least.
constexpr std::size_t credit_bytes = std::size_t{64} << 20U;

template <class T>
class LocalJobImpl final : public LocalJob {
 public:
  LocalJobImpl(Assignment<T> assignment, LocalJobOptions options)
      : assignment_(std::move(assignment)),
        options_(std::move(options)),
        layout_(std::shared_ptr<const core::Layout>{assignment_.task, &assignment_.task->layout()}),
        start_(std::make_shared<const std::vector<core::RangeState>>(
            of_founders(std::move(assignment_.start)))),
        config_(options_.control_threads > 0
                    ? options_.control_threads
                    : std::max(1U, std::thread::hardware_concurrency() / 2)),
        system_(config_) {
    const JobOptions& job = assignment_.job;
    job_context_->task = assignment_.task;
    job_context_->pool = std::make_unique<ComputePool>(compute_threads(job));
    job_context_->delay = job.delay;
    job_context_->slowdown_factors = slowdown_factors(job.stragglers, job.workers).value();
    job_context_->seed = job.seed;
    job_context_->clock = &system_.clock();
    job_context_->start = job_context_->clock->now();
  }

  ~LocalJobImpl() override {
    job_context_->pool->close();
    for_everyone([](const MemberActor& member) { actor::post(member, actor::quit_atom_v); });
    {
      const std::lock_guard lock{mutex_};
      members_.clear();
    }
    system_.await_all_actors_done();
  }

  LocalJobImpl(const LocalJobImpl&) = delete;
  LocalJobImpl& operator=(const LocalJobImpl&) = delete;

  void found(const std::vector<core::Member>& here, const core::ConfigurationPtr& first) override {
    for (const core::Member& member : here) spawn(member, first, {});
    for (const core::Member& member : here) start_member(member.id);
  }

  void join(const core::Member& self, const std::vector<core::MemberId>& seeds) override {
    spawn(self, nullptr, seeds);
    start_member(self.id);
  }

  void deliver(core::Envelope envelope, bool at_once) override {
    const std::size_t bytes =
        envelope.packet.payload ? core::payload_bytes(*envelope.packet.payload) : 0;
    // Mailboxes have no bound of their own. A packet that finds no capacity is dropped, and sent
    // again.
    const std::size_t waiting = waiting_bytes_->load();
    if (waiting > 0 && bytes > 0 && waiting + bytes > mailbox_bytes_max) return;
    const MemberActor member = find(envelope.to);
    if (!member) return;
    *waiting_bytes_ += bytes;
    actor::EnvelopePtr counted{new core::Envelope{std::move(envelope)},
                               [waiting = waiting_bytes_, bytes](const core::Envelope* taken) {
                                 *waiting -= bytes;
                                 delete taken;
                               }};
    if (at_once)
      actor::post_and_run(member, std::move(counted));
    else
      actor::post(member, std::move(counted));
  }

  void judge(const actor::LivenessUpdate& update) override {
    for_everyone([&](const MemberActor& member) { actor::post(member, update); });
  }
  void stop() override {
    for_everyone([](const MemberActor& member) {
      actor::post(member, actor::skip_delays_atom_v);
      actor::post(member, core::Stop{});
    });
  }
  void pause(core::Time duration) override {
    for_everyone([&](const MemberActor& member) { actor::post(member, actor::Pause{duration}); });
  }
  void leave() override {
    for_everyone([](const MemberActor& member) {
      actor::post(member, actor::skip_delays_atom_v);
      actor::post(member, actor::leave_atom_v);
    });
  }

  void dismiss(const std::vector<core::MemberId>& members) override {
    for (const core::MemberId id : members) {
      MemberActor gone;
      {
        const std::lock_guard lock{mutex_};
        const auto member = members_.find(id);
        if (member == members_.end()) continue;
        gone = member->second.actor;
        members_.erase(member);
      }
      actor::post(gone, actor::quit_atom_v);
    }
  }

  std::vector<actor::MemberReport> reports() override {
    std::vector<actor::MemberReport> all;
    ask<actor::MemberReport>(actor::report_atom_v, answer_within,
                             [&](const Resident& member, auto* report) {
                               if (report != nullptr) member.fate->note(*report);
                               all.push_back(member.fate->last());
                             });
    return all;
  }

  std::vector<core::RangeState> ranges(const actor::ReadRanges& wanted) override {
    std::vector<core::RangeState> all;
    ask<std::vector<core::RangeState>>(wanted, read_within, [&](const Resident&, auto* some) {
      if (some != nullptr) std::ranges::move(*some, std::back_inserter(all));
    });
    return all;
  }

  core::ConfigurationPtr configuration() override {
    core::ConfigurationPtr latest;
    ask<core::ConfigurationPtr>(actor::step_atom_v, answer_within, [&](const Resident&, auto* own) {
      if (own != nullptr && *own && (!latest || (*own)->epoch > latest->epoch)) latest = *own;
    });
    return latest;
  }

 private:
  void spawn(const core::Member& self, const core::ConfigurationPtr& first,
             const std::vector<core::MemberId>& seeds) {
    const JobOptions& job = assignment_.job;
    core::MemberOptions<T> node;
    node.self = self;
    node.mode = job.mode;
    node.worker.last = job.steps;
    node.worker.plans = assignment_.task->chooses_reads();
    node.worker.barrier = job.barrier;
    node.worker.recheck = job.recheck.value_or(core::default_recheck(job.mode));
    node.worker.attempts = job.attempts;
    node.worker.window =
        std::clamp<std::size_t>(credit_bytes / core::range_bytes_max / job.workers, 1, 64);
    node.shard.layout = layout_;
    node.shard.applier = assignment_.applier;
    node.shard.workers = job.workers;
    node.members_max = static_cast<core::MemberId>(options_.members_max);
    node.start = start_;
    node.first = first;
    node.seeds = seeds;
    node.council.copies = job.copies;
    node.council.owners = owners_wanted(job);
    node.council.give_up_after = job.wait_for_nodes;
    // Where it sees no majority, the node gives the job up earlier, and logs which nodes it waited
    // for.
    node.council.patience = 2 * job.wait_for_nodes;
    // With real clocks and threads, times are longer than in a simulation, so that nothing is sent
    // twice that is only late.
    node.channel.resend_first = std::chrono::milliseconds{200};
    node.channel.resend_min = std::chrono::milliseconds{50};
    node.channel.acknowledge_within = std::chrono::milliseconds{10};
    const auto fate = std::make_shared<Fate>(self);
    const actor::Visit visit;
    const MemberActor member = system_.spawn<MemberHost<T>>(
        job_context_, std::move(node),
        [this](std::vector<core::Envelope> envelopes) { send(std::move(envelopes)); },
        [fate] { fate->is_out = true; }, [fate](const std::string& why) { fate->fail(why); });
    const std::lock_guard lock{mutex_};
    members_[self.id] = {member, fate};
  }

  void start_member(core::MemberId id) { actor::post(find(id), actor::start_atom_v); }

  /// The member with this id here, or empty. An excluded member does not count: a member of another
  /// node may have its id.
  MemberActor find(core::MemberId id) {
    const std::lock_guard lock{mutex_};
    const auto member = members_.find(id);
    return member == members_.end() || member->second.fate->is_out ? MemberActor{}
                                                                   : member->second.actor;
  }

  void send(std::vector<core::Envelope> envelopes) {
    std::vector<core::Envelope> away;
    for (core::Envelope& envelope : envelopes)
      if (const MemberActor member = find(envelope.to))
        actor::post(member, std::make_shared<const core::Envelope>(std::move(envelope)));
      else
        away.push_back(std::move(envelope));
    if (!away.empty() && options_.send) options_.send(std::move(away));
  }

  /// The state of a member that outlives its actor.
  class Fate {
   public:
    explicit Fate(const core::Member& self) {
      last_.member = self.id;
      last_.incarnation = self.incarnation;
    }

    void note(const actor::MemberReport& report) {
      const std::lock_guard lock{mutex_};
      if (last_.state != actor::MemberReport::State::failed) last_ = report;
    }
    void fail(const std::string& why) {
      const std::lock_guard lock{mutex_};
      last_.state = actor::MemberReport::State::failed;
      last_.why = why;
    }
    [[nodiscard]] actor::MemberReport last() const {
      const std::lock_guard lock{mutex_};
      return last_;
    }

    std::atomic<bool> is_out = false;

   private:
    mutable std::mutex mutex_;
    actor::MemberReport last_;
  };
  struct Resident {
    MemberActor actor;
    std::shared_ptr<Fate> fate;
  };

  [[nodiscard]] std::vector<Resident> everyone() {
    const std::lock_guard lock{mutex_};
    std::vector<Resident> all;
    for (const auto& [id, member] : members_) all.push_back(member);
    return all;
  }

  template <class F>
  void for_everyone(F f) {
    for (const Resident& member : everyone()) f(member.actor);
  }

  /// Calls `take(member, answer)` for each member; `answer` is null where none came in time. All
  /// are asked at once.
  template <class Answer, class Question, class Take>
  void ask(const Question& question, std::chrono::milliseconds timeout, Take take) {
    const actor::Visit visit;
    caf::scoped_actor self{system_};
    const std::vector<Resident> members = everyone();
    std::vector<decltype(self->request(MemberActor{}, timeout, question))> asked;
    asked.reserve(members.size());
    for (const Resident& member : members)
      asked.push_back(self->request(member.actor, timeout, question));
    for (std::size_t i = 0; i < members.size(); ++i)
      asked[i].receive([&](Answer& answer) { take(members[i], &answer); },
                       [&](const caf::error&) { take(members[i], static_cast<Answer*>(nullptr)); });
  }

  Assignment<T> assignment_;
  LocalJobOptions options_;
  std::shared_ptr<const core::Layout> layout_;
  std::shared_ptr<const std::vector<core::RangeState>> start_;
  JobContextPtr job_context_ = std::make_shared<JobContext>();
  actor::Config config_;
  caf::actor_system system_;
  std::mutex mutex_;
  std::map<core::MemberId, Resident> members_;
  std::shared_ptr<std::atomic<std::size_t>> waiting_bytes_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace

template <class T>
Result<std::unique_ptr<LocalJob>> make_local_job(Assignment<T> assignment,
                                                 LocalJobOptions options) {
  if (auto valid = check(assignment.job); !valid) return std::move(valid).error();
  if (auto valid = check_start(assignment.job, assignment.start); !valid)
    return std::move(valid).error().within("the saved state");
  if (assignment.job.workers > options.members_max)
    return Error{"workers=" + std::to_string(assignment.job.workers) + ": at most " +
                 std::to_string(options.members_max) + " members are allowed for"};
  keep_freed_memory();
  return std::unique_ptr<LocalJob>{
      std::make_unique<LocalJobImpl<T>>(std::move(assignment), std::move(options))};
}

template Result<std::unique_ptr<LocalJob>> make_local_job<float>(Assignment<float>,
                                                                 LocalJobOptions);
template Result<std::unique_ptr<LocalJob>> make_local_job<double>(Assignment<double>,
                                                                  LocalJobOptions);

}  // namespace starling::actor
