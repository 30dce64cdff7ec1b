#include "starling/engine/core/training/training.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/training/training_events.hpp"
#include "starling/engine/core/worker/worker_configuration.hpp"

namespace starling::core {

static_assert(Role<Training>);

namespace {

/// True if the job is bulk-synchronous: under the barrier, the exchange gathers all workers'
/// updates of a step.
bool is_bsp(const TrainingOptions& options) {
  return keeps_steps_centrally(options.mode) && barrier::is_bsp(options.worker.barrier) &&
         exchange_type(options.exchange.name).gathers;
}

/// True if workers must be given their part of the first deal: if batches differ in size, or if the
/// deal may end although the members stay the same.
bool deals_part_at_start(const DealOptions& deal) { return deal.dynamic || deal.by_samples; }

AnyExchange make_exchange(const TrainingOptions& options, const RoleSetup& setup) {
  ExchangeOptions exchange = options.exchange;
  exchange.self = setup.self;
  exchange.bsp = is_bsp(options);
  if (exchange.workers_max == 0) exchange.workers_max = setup.members_max;
  return exchange_type(exchange.name).make(std::move(exchange));
}

}  // namespace

Training::Training(std::shared_ptr<const TrainingOptions> options, RoleSetup setup)
    : options_(std::move(options)),
      self_(setup.self),
      joins_(!setup.first_configuration),
      exchange_(make_exchange(*options_, setup)) {
  if (!joins_) first_entry_ = first_ledger_entry(*options_->exchange.initial_states, self_.id);
  if (options_->deal.workers > 0 && (joins_ || deals_part_at_start(options_->deal) ||
                                     !setup.first_configuration->is_of_one_process()))
    dealer_ = std::make_unique<Dealer>(options_->deal, setup.first_configuration.get());
}

bool Training::fits(const Configuration& configuration) const {
  return configuration.ranges.size() == range_count() &&
         configuration.coordinator.has_value() == keeps_steps_centrally(options_->mode);
}

/// Returns how many ranges a configuration of this job places.
std::size_t Training::range_count() const {
  return exchange_type(options_->exchange.name).places_ranges
             ? options_->exchange.layout->ranges.size()
             : 0;
}

Placement Training::placement() const {
  const ExchangeOptions& exchange = options_->exchange;
  const auto shards_optimizer = exchange_type(exchange.name).shards_optimizer;
  return {.bsp = is_bsp(*options_),
          .unplaced_ranges = exchange.layout->ranges.size() - range_count(),
          .node_by_node = shards_optimizer != nullptr && shards_optimizer(exchange.name)};
}

// --- configurations -----------------------------------------------------------------------------

void Training::inform_exchange(const Context& context, const Configuration* former) {
  run_exchange(context, [&](auto& exchange, const auto& c) {
    exchange.on_configuration(c, configuration_, former != nullptr ? former->epoch : 0);
  });
}

/// If this member is coordinator: passes the changes to the Coordinator, or makes it.
void Training::inform_coordinator(const Context& context, const Configuration* former) {
  const Configuration& now = *configuration_;
  if (now.coordinator != self_.id) return;
  if (coordinator_)
    return run_coordinator(context, [&](auto& coordinator, const auto& c) {
      std::vector<MemberId> left;
      for (const Member& member : former->members_not_in(now)) left.push_back(member.id);
      coordinator.on_members(c, left, workers_of(now.members_not_in(*former)));
    });
  coordinator_ = std::make_unique<Coordinator>(
      CoordinatorOptions{options_->worker.barrier, options_->worker.recheck});
  const std::vector<MemberId> workers = workers_of(now.members);
  if (now.epoch == 1) {
    for (const MemberId worker : workers)
      coordinator_->add_initial_worker(
          worker, first_ledger_entry(*options_->exchange.initial_states, worker).step);
    return;
  }
  coordinator_->take_over(workers, owners_of(now));
  context.out.push_back(SpreadConfiguration{});  // each member answers with its WorkerStatus
}

/// Tells this member's worker which workers the job has, or makes the worker if this is the first
/// configuration.
void Training::inform_worker(const Context& context, const Configuration* former) {
  if (!self_.works) return;
  WorkerConfiguration next = former == nullptr && options_->first_worker_configuration
                                 ? *options_->first_worker_configuration
                                 : worker_configuration(*configuration_, former);
  if (worker_)
    return run_worker(context, [&](auto& w, const auto& c) { w.on_workers(c, std::move(next)); });
  WorkerOptions worker = worker_options();
  worker.workers = std::move(next.workers);
  worker_.emplace(std::move(worker));
  if (!configuration_->is_of_one_process()) start(context);
}

WorkerOptions Training::worker_options() {
  WorkerOptions worker = options_->worker;
  worker.id = self_.id;
  worker.incarnation = self_.incarnation;
  worker.central = keeps_steps_centrally(options_->mode);
  worker.joins = joins_;
  worker.bsp = is_bsp(*options_);
  worker.exchange_is_barrier = exchange_type(options_->exchange.name).is_barrier;
  if (worker.exchange_is_barrier) worker.barrier = {barrier::Asp{}};
  if (dealer_) {
    worker.awaits_deal = joins_;
    worker.deal_first_step = dealer_->deal().workers.front().first_step.value();
    if (!joins_ && deals_part_at_start(options_->deal))
      worker.first_part = dealer_->part_of(self_.id);
  }
  if (!joins_) {
    worker.first_step = first_entry_.step;
    worker.samples = first_entry_.samples;
  }
  return worker;
}

/// Sends the dealer what this member knows about the samples that were taken. If it is not known
/// yet what its worker has taken, the report waits for the worker's update.
void Training::report_deal(const Context& context) {
  is_report_due_ = worker_ && !worker_->knows_taken();
  if (is_report_due_) return;
  DealReport report{.number = dealer_->reported(), .deal = dealer_->deal()};
  if (worker_) {
    if (dealer_->has_begun()) report.taken = worker_->dealt_taken();
    report.begun = worker_->steps_begun();
    report.is_done = worker_->is_done();
    const auto [samples, time] = worker_->work_done();
    report.samples = samples;
    report.nanoseconds = static_cast<std::uint64_t>(time.count());
    if (options_->deal.by_samples) report.samples_in_all = worker_->samples_taken();
  }
  report.progress = dealer_->progress_of_departed(*configuration_, progress());
  context.send(Dealer::dealer_of(*configuration_), std::move(report));
}

/// Asks the dealer for a new deal when this is due, unless the worker makes its last step.
void Training::ask_for_revision(const Context& context) {
  if (!dealer_ || !worker_ || !dealer_->has_begun()) return;
  if (worker_->steps_begun().value_or(0) >= worker_->options().last_step) return;
  if (dealer_->take_due_revision(self_.id, worker_->dealt_taken().value_or(0)))
    context.send(Dealer::dealer_of(*configuration_), RevisionRequest{dealer_->deal().number});
}

/// If the coordinator has changed, sends the new one what this member knows about the steps.
void Training::send_status(const Context& context, const Configuration* former) {
  const Configuration& now = *configuration_;
  if (!now.coordinator || now.epoch == 1) return;
  if (former != nullptr && now.has_same_coordinator_as(*former)) return;
  WorkerStatus status = worker_ ? worker_->report_status() : WorkerStatus{.member = self_.id};
  for (const WorkerProgress& known : progress()) status.held = std::max(status.held, known.step);
  context.send(*now.coordinator, status);
}

// --- events -------------------------------------------------------------------------------------

void Training::start(const Context& context) {
  run_worker(context, [](auto& worker, const auto& c) { worker.start(c); });
}

void Training::stop(const Context& context) {
  run_worker(context, [](auto& worker, const auto& c) { worker.on(c, Stop{}); });
  if (configuration_->is_of_one_process())
    run_coordinator(context, [](auto& coordinator, const auto& c) { coordinator.on(c, Stop{}); });
}

void Training::leave(const Context& context) {
  run_exchange(context, [](auto& exchange, const auto& c) {
    if constexpr (requires { exchange.leave(c); }) exchange.leave(c);
  });
  run_worker(context, [](auto& worker, const auto& c) { worker.leave(c); });
}

void Training::on_timer(const Context& context, std::uint32_t key) {
  if (key == worker_key)
    run_worker(context, [](auto& worker, const auto& c) { worker.on_timer(c); });
  else if (key == coordinator_key)
    run_coordinator(context, [](auto& coordinator, const auto& c) { coordinator.on_timer(c); });
  else if (key == exchange_key)
    run_exchange(context, [](auto& exchange, const auto& c) { exchange.on_timer(c); });
}

bool Training::on(const Context& context, MemberId from, const DealReport& report) {
  if (!dealer_) return true;
  if (auto next = dealer_->on(*configuration_, from, report))
    context.out.push_back(SendToAll<Messages>{NewDeal{*std::move(next)}});
  return true;
}

bool Training::on(const Context& context, MemberId, const NewDeal& next) {
  if (dealer_ && dealer_->on(*configuration_, next))
    context.send(Dealer::dealer_of(*configuration_), DealReceived{next.deal.number});
  return true;
}

bool Training::on(const Context& context, MemberId from, const DealReceived& receipt) {
  if (!dealer_) return true;
  if (const auto begin = dealer_->on(*configuration_, from, receipt))
    context.out.push_back(SendToAll<Messages>{*begin});
  return true;
}

bool Training::on(const Context& context, MemberId, const BeginDeal& begin) {
  if (!dealer_ || !dealer_->on(*configuration_, begin)) return true;
  run_worker(context,
             [&](auto& worker, const auto& c) { worker.on_deal(c, dealer_->part_of(self_.id)); });
  return true;
}

bool Training::on(const Context& context, MemberId, const RevisionRequest& request) {
  if (!dealer_) return true;
  if (const auto call = dealer_->on(*configuration_, request))
    context.out.push_back(SendToAll<Messages>{*call});
  return true;
}

bool Training::on(const Context& context, MemberId, const CallForReports& call) {
  if (!dealer_ || !dealer_->take_due_report(*configuration_, call)) return true;
  if (worker_) worker_->hold();
  report_deal(context);
  return true;
}

// --- effects ------------------------------------------------------------------------------------

void Training::execute(const Context& context, Effects effects, std::uint32_t key) {
  for (Effect& effect : effects) {
    if (const auto* timer = std::get_if<SetTimer>(&effect)) {
      context.out.push_back(RoleTimer{timer->at, key});
    } else if (auto* send = std::get_if<Send>(&effect)) {
      std::optional<MemberId> to = configuration_->coordinator;
      if (const auto* member = std::get_if<ToMember>(&send->to)) to = member->id;
      if (!to) continue;  // there is no coordinator
      std::visit([&](auto& message) { context.send(*to, std::move(message)); }, send->message);
    } else if (auto* read = std::get_if<Read>(&effect)) {
      run_exchange(context, [&](auto& e, const auto& c) { e.read(c, std::move(*read)); });
    } else if (auto* parts = std::get_if<WriteParts>(&effect)) {
      run_exchange(context, [&](auto& e, const auto& c) {
        if constexpr (requires { e.write_parts(c, std::move(*parts)); })
          e.write_parts(c, std::move(*parts));
      });
    } else if (auto* write = std::get_if<Write>(&effect)) {
      run_exchange(context, [&](auto& e, const auto& c) { e.write(c, std::move(*write)); });
    } else if (const auto* enter = std::get_if<Enter>(&effect)) {
      run_exchange(context, [&](auto& e, const auto& c) { e.enter(c, *enter); });
    } else if (const auto* end = std::get_if<EndWrites>(&effect)) {
      run_exchange(context, [&](auto& e, const auto& c) { e.end(c, *end); });
    } else if (auto* failure = std::get_if<Fail>(&effect)) {
      execute(context, *failure);
    } else if (auto* plan = std::get_if<Plan>(&effect)) {
      context.output(*plan);
    } else if (auto* compute = std::get_if<Compute>(&effect)) {
      context.output(std::move(*compute));
    } else if (const auto* hand_in = std::get_if<HandInNow>(&effect)) {
      context.output(*hand_in);
    } else {
      context.output(std::get<Done>(effect));
    }
  }
  effects.clear();
  if (context.scratch != nullptr) context.scratch->effects = std::move(effects);
}

bool Training::is_done() const {
  return (!worker_ || worker_->is_done()) &&
         std::visit([](const auto& exchange) { return exchange.may_leave(); }, exchange_);
}

std::vector<RangeId> Training::full_ranges() const {
  return std::visit([](const auto& exchange) { return exchange.full_ranges(); }, exchange_);
}

std::uint64_t Training::full_ranges_version() const {
  return std::visit([](const auto& exchange) { return exchange.full_ranges_version(); }, exchange_);
}

ReadCounts Training::read_counts() const {
  return std::visit([](const auto& exchange) { return exchange.read_counts(); }, exchange_);
}

std::vector<WorkerProgress> Training::progress() const {
  return std::visit([](const auto& exchange) { return exchange.progress(); }, exchange_);
}

void Training::on(const Context& context, PlanResult& result) {
  run_worker(context, [&](auto& worker, const auto& c) {
    worker.on_plan(c, result.step, std::move(result.plan));
  });
}

void Training::on(const Context& context, PartsResult& result) {
  run_worker(context, [&](auto& worker, const auto& c) {
    worker.on_parts(c, result.step, std::move(result.parts));
  });
}

void Training::on(const Context& context, ComputeResult& result) {
  run_worker(context, [&](auto& worker, const auto& c) {
    worker.on_update(c, result.step, std::move(result.update), result.postponed);
  });
  if (is_report_due_) report_deal(context);
  ask_for_revision(context);
}

void Training::on(const Context& context, const StepFailure& failure) {
  run_worker(context,
             [&](auto& worker, const auto& c) { worker.on_failure(c, failure.step, failure.why); });
}

void Training::on(const Context& context, const Snapshot& request) {
  run_exchange(context, [&](auto& exchange, const auto& c) { exchange.on(c, request); });
}

void Training::execute(const Context& context, const SetTimer& timer) {
  context.out.push_back(RoleTimer{timer.at, exchange_key});
}

void Training::execute(const Context& context, ReadDone& done) {
  run_worker(context,
             [&](auto& w, const auto& c) { w.on_values(c, done.step, std::move(done.values)); });
}

void Training::execute(const Context& context, const Written& written) {
  run_worker(context, [&](auto& w, const auto& c) { w.on_written(c, written.step); });
}

void Training::execute(const Context& context, ObservedState& observed) {
  context.output(std::move(observed));
}

void Training::execute(const Context& context, Fail& failure) {
  context.out.push_back(std::move(failure));
}

}  // namespace starling::core
