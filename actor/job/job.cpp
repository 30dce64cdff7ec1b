#include "starling/actor/job/job.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "starling/actor/job/member_handles.hpp"
#include "starling/actor/job/member_host.hpp"
#include "starling/actor/job/observer.hpp"
#include "starling/actor/job/training_options.hpp"
#include "starling/actor/system.hpp"
#include "starling/engine/core/training/hand_ins.hpp"
#include "starling/engine/core/worker/worker_configuration.hpp"

namespace starling::actor {
namespace {

using core::MemberId;

std::size_t processor_count() { return std::max(1U, std::thread::hardware_concurrency()); }

/// Returns half the number of processors: control is little work compared to computing, and fewer
/// threads contend less for the queue of messages. On two processors, a step took 72-88 us with one
/// control thread and 94-106 us with two.
std::size_t control_thread_count() { return std::max<std::size_t>(1, processor_count() / 2); }

/// A promise of the job's outcome. The first call of set() sets it; later ones have no effect.
class OutcomePromise {
 public:
  void set(Outcome outcome) {
    if (!is_set_.exchange(true)) promise_.set_value(std::move(outcome));
  }
  [[nodiscard]] bool is_set() const { return is_set_; }
  Outcome wait() { return promise_.get_future().get(); }

 private:
  std::atomic<bool> is_set_ = false;
  std::promise<Outcome> promise_;
};

/// Spawns a job's actors, waits for the job's outcome, and ends the actors in order.
class JobRunner {
 public:
  JobRunner(const JobOptions& options, std::shared_ptr<Task> task, core::ApplierPtr applier,
            std::vector<core::RangeState> initial_states, core::DealOptions deal)
      : options_(options),
        deal_(std::move(deal)),
        applier_(std::move(applier)),
        initial_states_(
            std::make_shared<const std::vector<core::RangeState>>(std::move(initial_states))),
        first_entries_(first_ledger_entries(*initial_states_, options.workers)),
        layout_(std::shared_ptr<const core::Layout>{task, &task->layout()}),
        configuration_(std::make_shared<const core::Configuration>(core::one_process_configuration(
            options.mode, options.workers, owner_count(options),
            core::assign_ranges(placed_ranges(options, layout_->ranges.size()),
                                owner_count(options))))),
        worker_configuration_(std::make_shared<const core::WorkerConfiguration>(
            core::worker_configuration(*configuration_, nullptr))),
        config_(options.scheduler != nullptr ? 0 : control_thread_count()),
        system_(config_) {
    job_context_->task = std::move(task);
    job_context_->pool = std::make_unique<ComputePool>(compute_threads(options));
    job_context_->delay = options.delay;
    job_context_->slowdown_factors = slowdown_factors(options.stragglers, options.workers).value();
    job_context_->seed = options.seed;
    job_context_->timeline = options.timeline;
    if (deal_.by_samples) job_context_->visits = std::make_unique<SampleVisits>(deal_.samples);
    job_context_->clock = &system_.clock();
  }

  Outcome run() {
    spawn_members();
    const auto model = system_.spawn<LocalOwners>(answerers());
    const auto job = system_.spawn<LocalJobHandle>(directory_->observer);
    job_context_->start = job_context_->clock->now();
    // No actor starts before all have the directory.
    actor::post(directory_->observer, actor::DirectoryPtr{directory_});
    for_each_member(
        [&](const MemberActor& member) { actor::post(member, actor::DirectoryPtr{directory_}); });
    if (call_on_start(model, job)) {
      actor::post(directory_->observer, actor::start_atom_v);
      for_each_member([](const MemberActor& member) { actor::post(member, actor::start_atom_v); });
    }
    run_to_end();
    Outcome outcome = outcome_->wait();
    // Waits for the pool's running computations, and discards waiting ones. Workers of a failed job
    // are not stopped yet: computations that they submit now are discarded too, but workers may run
    // brief computations themselves.
    job_context_->pool->close();
    actor::post(directory_->observer, actor::quit_atom_v);
    for_each_member([](const MemberActor& member) { actor::post(member, actor::quit_atom_v); });
    caf::anon_send_exit(model, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(job, caf::exit_reason::user_shutdown);
    directory_.reset();
    run_until([this] { return system_.registry().running() == 0; });
    return outcome;
  }

 private:
  /// Returns, for each range, the member that answers questions about its values.
  [[nodiscard]] std::vector<MemberActor> answerers() const {
    std::vector<MemberActor> members;
    for (core::RangeId range = 0; range < layout_->ranges.size(); ++range)
      members.push_back(directory_->members.at(
          core::exchange_answerer(options_.exchange, *configuration_, range).value()));
    return members;
  }

  /// Calls on_start. Returns false if it threw, which ends the job.
  bool call_on_start(const MemberHandle& model, const JobHandle& job) {
    if (!options_.on_start) return true;
    auto actors = std::make_shared<JobActors>();
    actors->workers.assign(directory_->workers.begin(), directory_->workers.end());
    actors->owners.assign(directory_->owners.begin(), directory_->owners.end());
    actors->coordinator = directory_->coordinator;
    actors->model = model;
    actors->job = job;
    actor::post(directory_->observer, actor::JobActorsPtr{actors});
    const auto fault = run_catching([&] { options_.on_start(actors, system_); });
    if (fault)
      outcome_->set(
          {.end = Outcome::End::failed, .error = "on_start: " + *fault, .last = {}, .model = {}});
    return !fault;
  }

  /// If there is a scheduler, runs it until `is_over()`. Without one, threads run the actors.
  void run_until(const std::function<bool()>& is_over) {
    if (options_.scheduler != nullptr)
      options_.scheduler->run_until(system_, *job_context_->pool, is_over);
  }

  void run_to_end() {
    run_until([this] { return outcome_->is_set(); });
    if (options_.scheduler != nullptr)
      outcome_->set({.end = Outcome::End::failed,
                     .error = "the scheduler has ended before the job",
                     .last = {},
                     .model = {}});
  }

  /// Calls `f` for each member, in the order in which they are started and ended: owners and the
  /// coordinator before workers.
  template <class F>
  void for_each_member(F f) {
    const auto& members = directory_->members;
    std::for_each(members.rbegin(), members.rend(), f);
  }

  void spawn_members() {
    auto directory = std::make_shared<actor::Directory>();
    const auto deliver = [promise = outcome_](Outcome outcome) {
      promise->set(std::move(outcome));
    };
    if (options_.scheduler != nullptr)
      directory->observer =
          system_.spawn<ObserverHost>(job_context_, options_, first_entries_, deliver);
    else
      directory->observer = system_.spawn<ObserverHost, caf::detached>(job_context_, options_,
                                                                       first_entries_, deliver);
    actor::when_ended(directory->observer, [promise = outcome_](const caf::error&) {
      promise->set({.end = Outcome::End::failed,
                    .error = "the observer ended unexpectedly",
                    .last = {},
                    .model = {}});
    });
    core::MemberOptions options = member_options();
    for (const core::Member& self : configuration_->members) {
      options.self = self;
      const MemberActor member =
          watch(directory->observer, self, system_.spawn<MemberHost>(job_context_, options));
      directory->members.push_back(member);
      if (self.works) directory->workers.push_back(member);
      if (self.owns) directory->owners.push_back(member);
      if (configuration_->coordinator == self.id) directory->coordinator = member;
    }
    directory_ = std::move(directory);
  }

  /// Makes the job fail if `actor` ends for any reason but a quit message. Returns `actor`.
  static MemberActor watch(const ObserverActor& observer, const core::Member& member,
                           MemberActor actor) {
    actor::when_ended(
        actor, [weak = caf::actor_cast<caf::actor_addr>(observer), name = core::name_of(member),
                owns = member.owns](const caf::error& reason) {
          if (!reason) return;
          if (const auto alive = caf::actor_cast<actor::ObserverActor>(weak))
            actor::post(alive, actor::Failure{name + " ended unexpectedly", owns});
        });
    return actor;
  }

  /// Returns the options that are the same for all members; the caller sets `self`.
  core::MemberOptions member_options() const {
    core::TrainingOptions training =
        training_options(options_, *job_context_->task, applier_, layout_, initial_states_);
    training.exchange.workers_max = options_.workers;
    training.deal = deal_;
    if (saves_rounds(options_))
      training.exchange.pending_snapshot =
          first_checkpoint_request(options_, first_entries_.front().step);
    training.first_worker_configuration = worker_configuration_;
    core::MemberOptions member;
    member.role = std::make_shared<const core::TrainingOptions>(std::move(training));
    member.members_max = static_cast<MemberId>(configuration_->members.size());
    member.first_configuration = configuration_;
    return member;
  }

  const JobOptions& options_;
  core::DealOptions deal_;
  core::ApplierPtr applier_;
  std::shared_ptr<const std::vector<core::RangeState>> initial_states_;
  std::vector<core::LedgerEntry> first_entries_;
  std::shared_ptr<const core::Layout> layout_;
  core::ConfigurationPtr configuration_;
  std::shared_ptr<const core::WorkerConfiguration> worker_configuration_;
  std::shared_ptr<OutcomePromise> outcome_ = std::make_shared<OutcomePromise>();
  JobContextPtr job_context_ = std::make_shared<JobContext>();
  std::shared_ptr<const actor::Directory> directory_;
  actor::Config config_;
  /// Declared last so that it is destroyed first: its destructor waits for all actors.
  caf::actor_system system_;
};

/// Refuses states that are not those of all ranges of the layout, for example because they are of
/// another model, or because another number of owners has divided the model differently. Requires:
/// check_initial_states() has accepted the states.
Result<void> check_fits(const core::Layout& layout, const core::Applier& applier,
                        std::size_t workers, const std::vector<core::RangeState>& states) {
  if (states.size() != layout.ranges.size())
    return Error{"holds " + std::to_string(states.size()) +
                 " ranges; valid: " + std::to_string(layout.ranges.size()) +
                 ", which depends on the model and the number of owners"};
  for (const core::RangeState& state : states) {
    if (state.ledger.size() > workers)
      return Error{"holds steps of " + std::to_string(state.ledger.size()) +
                   " workers; valid: up to " + std::to_string(workers) +
                   ", the number of the job's workers"};
    const std::size_t count = layout.ranges[state.range].count;
    if (!core::fits(layout, applier, state))
      return Error{"holds range " + std::to_string(state.range) + " with " +
                   std::to_string(state.value.count) + " elements and " +
                   std::to_string(state.slots.count) + " of the optimizer's state; valid: " +
                   std::to_string(count) + " and " + std::to_string(count * applier.slot_count())};
  }
  return {};
}

}  // namespace

Result<void> check(const JobOptions& options) {
  const auto recheck = options.recheck.value_or(core::default_recheck(options.mode));
  if (auto valid = core::check_exchange(options.exchange, options.mode, options.barrier, recheck,
                                        options.workers);
      !valid)
    return valid;
  if (options.cache)
    if (auto valid = core::check_cache(options.exchange, options.mode, options.barrier); !valid)
      return valid;
  if (auto factors = slowdown_factors(options.stragglers, options.workers); !factors)
    return std::move(factors).error();
  if (auto valid = check_always_available(options.stragglers); !valid) return valid;
  if (options.attempts < 1)
    return Error{"attempts=" + std::to_string(options.attempts) + "; valid: 1 or more"};
  if (options.replication_factor < 1) return Error{"copies=0; valid: 1 or more"};
  if (options.steps == barrier::unlimited && !options.time && !options.until && !options.stop_when)
    return Error{
        "the job would never end; valid: epochs, steps, a time (seconds), until or, in code, "
        "stop_when"};
  return {};
}

Result<void> check_initial_states(const JobOptions& options,
                                  const std::vector<core::RangeState>& initial_states) {
  constexpr core::Step step_max = core::Step{1} << 60U;
  const auto first = first_ledger_entries(initial_states, options.workers);
  for (core::RangeId range = 0; range < initial_states.size(); ++range)
    if (initial_states[range].range != range)
      return Error{"holds range " + std::to_string(initial_states[range].range) +
                   " in place of range " + std::to_string(range)};
  for (const auto& state : initial_states) {
    if (state.updates > step_max || state.samples > step_max)
      return Error{"holds " + std::to_string(state.updates) + " updates of " +
                   std::to_string(state.samples) + " samples in range " +
                   std::to_string(state.range) + ", which no job reaches"};
    for (MemberId worker = 0; worker < state.ledger.size(); ++worker) {
      const core::LedgerEntry& entry = state.ledger[worker];
      if (entry.step > step_max)
        return Error{"holds step " + std::to_string(entry.step) + " of worker " +
                     std::to_string(worker) + ", which no job reaches"};
      // A new job's workers have incarnation 0. If the ledger had a later one, owners would refuse
      // the workers' updates, and the workers would wait for ever.
      if (entry.incarnation != 0)
        return Error{"holds incarnation " + std::to_string(entry.incarnation) + " of worker " +
                     std::to_string(worker) + " in range " + std::to_string(state.range) +
                     "; valid: 0, because a new job starts every worker in incarnation 0"};
    }
  }
  if (!barrier::is_bsp(options.barrier)) return {};
  for (const auto& state : initial_states) {
    for (MemberId worker = 0; worker < options.workers; ++worker) {
      const core::Step step = worker < state.ledger.size() ? state.ledger[worker].step : 0;
      if (step == state.round && state.round == first[0].step) continue;
      return Error{"holds worker " + std::to_string(worker) + " at step " + std::to_string(step) +
                   " of range " + std::to_string(state.range) + ", which stands at round " +
                   std::to_string(state.round) + "; under " + barrier::print(options.barrier) +
                   " all go on from one round"};
    }
  }
  return {};
}

bool reached(const Target& target, const models::Metrics& metrics) {
  const auto metric = std::ranges::find(metrics, target.metric, &models::Metric::name);
  if (metric == metrics.end()) return false;
  return target.at_least ? metric->value >= target.value : metric->value <= target.value;
}

void reset_ledgers(std::vector<core::RangeState>& states, const JobOptions& options) {
  const bool has_even_rounds =
      barrier::is_bsp(options.barrier) && !core::exchange_type(options.exchange).is_barrier;
  for (core::RangeState& state : states) {
    state.ledger.resize(options.workers);
    for (core::LedgerEntry& entry : state.ledger) {
      entry.incarnation = 0;
      if (has_even_rounds) entry.step = state.round;
    }
  }
}

std::vector<core::LedgerEntry> first_ledger_entries(
    const std::vector<core::RangeState>& initial_states, std::size_t workers) {
  std::vector<core::LedgerEntry> first;
  for (MemberId worker = 0; worker < workers; ++worker)
    first.push_back(core::first_ledger_entry(initial_states, worker));
  return first;
}

std::size_t owner_count(const JobOptions& options) {
  if (!core::has_servers(options.mode)) return options.workers;
  return options.shards > 0 ? options.shards : std::clamp<std::size_t>(options.workers / 4, 1, 8);
}

std::size_t placed_ranges(const JobOptions& options, std::size_t ranges) {
  return core::exchange_type(options.exchange).places_ranges ? ranges : 0;
}

std::size_t requested_owner_count(const JobOptions& options) {
  return std::max(owner_count(options), options.replication_factor);
}

std::size_t compute_threads(const JobOptions& options) {
  if (options.scheduler != nullptr) return 0;
  return options.compute_threads > 0 ? options.compute_threads : processor_count();
}

Result<Outcome> run_job(const JobOptions& options, std::shared_ptr<Task> task,
                        core::ApplierPtr applier, std::vector<core::RangeState> initial_states,
                        core::DealOptions deal) {
  if (auto valid = check(options); !valid) return std::move(valid).error();
  if (options.steps == barrier::unlimited && !options.time && options.evaluate_every == 0)
    return Error{
        "the job would never end: it is not evaluated before its end, so `until` and `stop_when` "
        "have no effect; valid: evaluate_every above 0, epochs, steps or a time (seconds)"};
  if (auto valid = check_initial_states(options, initial_states); !valid)
    return std::move(valid).error().within("the saved state");
  if (!deal.by_samples)
    if (auto valid = core::check_hand_ins_without_samples(options.barrier); !valid)
      return std::move(valid).error();
  if (auto valid = check_fits(task->layout(), *applier, options.workers, initial_states); !valid)
    return std::move(valid).error().within("the saved state");
  STARLING_CHECK(options.timeline == nullptr ||
                 options.timeline->workers().size() == options.workers);
  keep_freed_memory();
  JobRunner runner{options, std::move(task), std::move(applier), std::move(initial_states),
                   std::move(deal)};
  return runner.run();
}

}  // namespace starling::actor
