#include "starling/engine/sim/protocol/protocol.hpp"

#include <algorithm>
#include <exception>
#include <numeric>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"
#include "starling/base/to_duration.hpp"
#include "starling/engine/sim/protocol/protocol_events.hpp"

namespace starling::sim {
namespace {

/// The keys of the seed's streams. The workers' own streams have the worker ids as keys.
enum class Stream : std::uint64_t { network = 1ULL << 32U, owners, coordinator, news, steps };

Random stream(std::uint64_t seed, Stream key, std::uint64_t worker = 0) {
  return Random::stream(seed, static_cast<std::uint64_t>(key), worker);
}

}  // namespace

Result<void> check(const ProtocolOptions& options) {
  const auto recheck = options.recheck.value_or(core::default_recheck(options.mode));
  if (auto valid = core::check(options.mode, options.barrier, recheck, options.workers); !valid)
    return valid;
  if (auto valid = check(options.link); !valid) return std::move(valid).error().within("link");
  if (owner_count(options) == 0) return Error{"shards=0: a job needs at least 1 server shard"};
  if (options.steps == barrier::finished && options.horizon == Time::max())
    return Error{"a job needs a number of steps or a horizon: else it never ends"};
  if (options.horizon <= Time{0})
    return Error{"horizon=" + print_duration(options.horizon) + ": valid: more than 0s"};
  if (options.point_every && *options.point_every <= Time{0})
    return Error{"points every " + print_duration(*options.point_every) + ": valid: more than 0s"};
  if (options.link.loss > 0 && options.channels == false)
    return Error{"loss=" + print_number(options.link.loss) +
                 ": a job does not survive lost messages without channels"};
  if (!options.slowness.empty() && options.slowness.size() != options.workers)
    return Error{std::to_string(options.slowness.size()) + " slownesses for " +
                 std::to_string(options.workers) + " workers"};
  return {};
}

Protocol::Protocol(ProtocolOptions options, Job job)
    : options_(std::move(options)),
      job_(std::move(job)),
      recheck_(options_.recheck.value_or(core::default_recheck(options_.mode))),
      bsp_(options_.bsp.value_or(barrier::is_bsp(options_.barrier))),
      channels_(options_.channels.value_or(options_.link.loss > 0)),
      network_(options_.link, stream(options_.seed, Stream::network)()),
      owner_random_(stream(options_.seed, Stream::owners)),
      coordinator_random_(stream(options_.seed, Stream::coordinator)),
      news_random_(stream(options_.seed, Stream::news)) {
  const auto valid = check(options_);
  STARLING_CHECK(valid.ok());
  spawn_members();
}

void Protocol::spawn_members() {
  const std::size_t workers = options_.workers;
  const std::size_t owners = owner_count(options_);
  owner_of_ = std::make_shared<const std::vector<core::OwnerId>>(
      core::assign_ranges(job_.layout->ranges.size(), owners));
  std::vector<MemberId> everyone(workers);
  std::iota(everyone.begin(), everyone.end(), MemberId{0});
  members_ = std::make_shared<const std::vector<MemberId>>(everyone);
  for (core::OwnerId id = 0; id < owners; ++id) {
    core::ShardOptions shard;
    shard.layout = job_.layout;
    shard.applier = job_.applier;
    shard.workers = workers;
    shard.bsp = bsp_;
    for (const core::RangeState& state : job_.start)
      if ((*owner_of_)[state.range] == id) shard.ranges.push_back(state);
    if (core::has_servers(options_.mode))
      shards_.emplace_back(std::move(shard));
    else
      peers_.emplace_back(worker_options(id), std::move(shard));
  }
  for (const MemberId id : everyone) {
    if (core::has_servers(options_.mode)) workers_.emplace_back(worker_options(id));
    random_.push_back(Random::stream(options_.seed, id));
    step_random_.push_back(stream(options_.seed, Stream::steps, id));
  }
  if (core::keeps_steps_centrally(options_.mode))
    coordinator_.emplace(
        core::CoordinatorOptions{options_.barrier, recheck_, std::vector<Step>(workers)});
  driver_lost_.resize(workers);
  dead_.resize(workers);
  incarnation_.resize(workers);
  step_of_.resize(workers);
  running_.assign(workers, true);
  ended_at_.assign(workers, Time::max());
  workers_at_[0] = workers;
  frozen_until_.resize(nodes());
}

core::WorkerOptions Protocol::worker_options(MemberId id) const {
  core::WorkerOptions worker;
  worker.id = id;
  worker.last_step = options_.steps;
  worker.central = core::keeps_steps_centrally(options_.mode);
  worker.bsp = bsp_;
  worker.asks_for_plan = static_cast<bool>(job_.plan);
  worker.barrier = options_.barrier;
  worker.recheck = recheck_;
  worker.workers = members_;
  worker.owner_of = owner_of_;
  return worker;
}

NodeId Protocol::observer() const {
  const std::size_t servers = core::has_servers(options_.mode) ? options_.shards : 0;
  const std::size_t coordinators = core::keeps_steps_centrally(options_.mode) ? 1 : 0;
  return static_cast<NodeId>(options_.workers + servers + coordinators);
}

NodeId Protocol::node_of(const core::Address& address) const {
  if (const auto* worker = std::get_if<core::ToWorker>(&address)) return worker->id;
  if (const auto* owner = std::get_if<core::ToOwner>(&address))
    return core::has_servers(options_.mode) ? static_cast<NodeId>(options_.workers) + owner->id
                                            : owner->id;
  return std::holds_alternative<core::ToCoordinator>(address) ? observer() - 1 : observer();
}

/// Returns the node at which the event happens; nullopt for an Action, which happens at no node.
std::optional<NodeId> Protocol::node_of(const Event& event) const {
  return std::visit(
      [this]<class E>(const E& e) -> std::optional<NodeId> {
        if constexpr (std::is_same_v<E, Arrival>)
          return node_of(e.addressed.to);
        else if constexpr (std::is_same_v<E, PacketArrival>)
          return e.to;
        else if constexpr (std::is_same_v<E, ChannelTimer>)
          return e.node;
        else if constexpr (std::is_same_v<E, CoordinatorTimer>)
          return node_of(core::ToCoordinator{});
        else if constexpr (std::is_same_v<E, Action>)
          return std::nullopt;
        else
          return e.id;
      },
      event);
}

// --- events -------------------------------------------------------------------------------------

bool Protocol::run() {
  for (MemberId id = 0; id < options_.workers; ++id)
    run_worker(id,
               [](core::Worker& worker, const core::Context& context) { worker.start(context); });
  schedule_points();
  for (std::uint64_t events = 0; !queue_.empty() && !is_over_; ++events) {
    if (queue_.next_at() > options_.horizon) {
      queue_.advance(options_.horizon);
      break;
    }
    if (events >= options_.events_max) {
      error_ = "the job does not finish within " + std::to_string(events) + " events";
      break;
    }
    if (handle_next_event() && on_event) on_event();
  }
  if (!curve_.empty() && curve_.back().at < now()) curve_.push_back(make_point());
  return error_.empty();
}

/// Handles the next event. Returns false if the event has to wait because its node is frozen.
bool Protocol::handle_next_event() {
  Event event = queue_.pop();
  if (const auto node = node_of(event); node && frozen_until_[*node] > now()) {
    queue_.push(frozen_until_[*node], std::move(event));
    return false;
  }
  std::visit([this](auto& e) { this->handle(e); }, event);
  return true;
}

void Protocol::handle(CoordinatorTimer&) {
  run_event(node_of(core::ToCoordinator{}), *coordinator_, coordinator_random_,
            &core::Coordinator::on_timer);
}

void Protocol::handle(WorkerTimer& timer) {
  if (incarnation_[timer.id] == timer.incarnation) run_worker(timer.id, &core::Worker::on_timer);
}

void Protocol::handle(PlanDue& due) {
  const MemberId id = due.id;
  const Step step = due.step;
  if (incarnation_[id] != due.incarnation) return;
  std::vector<core::RangeRows> rows;
  try {
    rows = job_.plan(id, step);
  } catch (const std::exception& fault) {
    return fail_step(id, step, fault.what());
  }
  run_worker(id, [&](core::Worker& worker, const core::Context& context) {
    worker.on_plan(context, step, std::move(rows));
  });
}

void Protocol::handle(UpdateDue& due) {
  const MemberId id = due.id;
  const Step step = due.compute.step;
  if (incarnation_[id] != due.incarnation) return;
  core::Update update;
  try {
    update = job_.compute(id, due.compute);
  } catch (const std::exception& fault) {
    return fail_step(id, step, fault.what());
  }
  run_worker(id, [&](core::Worker& worker, const core::Context& context) {
    worker.on_update(context, step, std::move(update));
  });
}

void Protocol::fail_step(MemberId id, Step step, const std::string& why) {
  run_worker(id, [&](core::Worker& worker, const core::Context& context) {
    worker.on_failure(context, step, why);
  });
}

// --- cores --------------------------------------------------------------------------------------

void Protocol::execute(MemberId id, core::Effect& effect) {
  if (auto* addressed = std::get_if<core::Send>(&effect)) {
    if (on_send) on_send(id, *addressed);
    send(id, std::move(*addressed));
  } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
    queue_.push(timer->at, WorkerTimer{id, incarnation_[id]});
  } else if (const auto* plan = std::get_if<core::Plan>(&effect)) {
    queue_.push(now(), PlanDue{id, incarnation_[id], plan->step});
  } else if (auto* read = std::get_if<core::Compute>(&effect)) {
    compute(id, *read);
  } else if (const auto* fail = std::get_if<core::Fail>(&effect)) {
    error_ = fail->why;
    is_over_ = true;
  }
}

void Protocol::compute(MemberId id, core::Compute& read) {
  if (on_compute) on_compute(id, read);
  const double slowness = options_.slowness.empty() ? 1 : options_.slowness[id];
  const Time step_time = options_.step_time.draw(step_random_[id]);
  queue_.push(now() + to_duration(static_cast<double>(step_time.count()) * slowness),
              UpdateDue{id, incarnation_[id], std::move(read)});
}

/// Updates the counts of workers at each step, and the largest lag, after an event of the worker.
void Protocol::follow_step(MemberId id) {
  if (!running_[id]) return;
  const core::Worker& core = worker(id);
  const bool runs = !core.is_done() && !dead_[id];
  if (core.step() == step_of_[id] && runs) return;
  const auto old = workers_at_.find(step_of_[id]);
  if (--old->second == 0) workers_at_.erase(old);
  updates_ += core.step() - step_of_[id];
  step_of_[id] = core.step();
  running_[id] = runs;
  if (runs) {
    ++workers_at_[core.step()];
    max_lag_ = std::max(max_lag_, workers_at_.rbegin()->first - workers_at_.begin()->first);
  } else {
    ended_at_[id] = now();
  }
}

}  // namespace starling::sim
