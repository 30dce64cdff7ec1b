#include "starling/engine/sim/protocol/protocol.hpp"

#include <algorithm>
#include <exception>
#include <numeric>

#include "starling/base/check.hpp"
#include "starling/base/text.hpp"

namespace starling::sim {
namespace {

/// Keys of the seed's streams, apart from those of the workers.
enum class Stream : std::uint64_t { network = 1ULL << 32U, owners, coordinator, news, steps };

Random stream(std::uint64_t seed, Stream key, std::uint64_t of = 0) {
  return Random::stream(seed, static_cast<std::uint64_t>(key), of);
}

constexpr int points_of_a_horizon = 200;

}  // namespace

Result<void> check(const ProtocolOptions& options) {
  const auto recheck = options.recheck.value_or(core::default_recheck(options.mode));
  if (auto valid = core::check(options.mode, options.barrier, recheck, options.workers); !valid)
    return valid;
  if (auto valid = check(options.link); !valid) return std::move(valid).error().within("link");
  if (owners(options) == 0) return Error{"shards=0: a job needs at least 1 server shard"};
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

template <class T>
Protocol<T>::Protocol(ProtocolOptions options, Job<T> job)
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

template <class T>
void Protocol<T>::spawn_members() {
  const std::size_t workers = options_.workers;
  const std::size_t owner_count = owners(options_);
  owner_of_ = std::make_shared<const std::vector<core::OwnerId>>(
      core::assign(job_.layout->ranges.size(), owner_count));
  std::vector<MemberId> everyone(workers);
  std::iota(everyone.begin(), everyone.end(), MemberId{0});
  members_ = std::make_shared<const std::vector<MemberId>>(everyone);
  for (core::OwnerId id = 0; id < owner_count; ++id) {
    core::ShardOptions<T> shard;
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
  down_.resize(workers);
  dead_.resize(workers);
  incarnation_.resize(workers);
  step_of_.resize(workers);
  running_.assign(workers, true);
  ended_at_.assign(workers, Time::max());
  workers_at_[0] = workers;
  frozen_until_.resize(nodes());
}

template <class T>
core::WorkerOptions Protocol<T>::worker_options(MemberId id) const {
  core::WorkerOptions worker;
  worker.id = id;
  worker.last = options_.steps;
  worker.central = core::keeps_steps_centrally(options_.mode);
  worker.bsp = bsp_;
  worker.plans = static_cast<bool>(job_.plan);
  worker.barrier = options_.barrier;
  worker.recheck = recheck_;
  worker.members = members_;
  worker.owner_of = owner_of_;
  return worker;
}

template <class T>
NodeId Protocol<T>::observer() const {
  const std::size_t servers = core::has_servers(options_.mode) ? options_.shards : 0;
  const std::size_t coordinators = core::keeps_steps_centrally(options_.mode) ? 1 : 0;
  return static_cast<NodeId>(options_.workers + servers + coordinators);
}

template <class T>
NodeId Protocol<T>::node_of(const core::Address& address) const {
  if (const auto* worker = std::get_if<core::ToWorker>(&address)) return worker->id;
  if (const auto* owner = std::get_if<core::ToOwner>(&address))
    return core::has_servers(options_.mode) ? static_cast<NodeId>(options_.workers) + owner->id
                                            : owner->id;
  return std::holds_alternative<core::ToCoordinator>(address) ? observer() - 1 : observer();
}

/// Returns the node that the event concerns; absent where it is not a node's own.
template <class T>
std::optional<NodeId> Protocol<T>::node_of(const Event& event) const {
  return std::visit(
      [this]<class E>(const E& e) -> std::optional<NodeId> {
        if constexpr (std::is_same_v<E, Arrival>)
          return node_of(e.mail.to);
        else if constexpr (std::is_same_v<E, PacketArrival>)
          return e.to;
        else if constexpr (std::is_same_v<E, ChannelTimer>)
          return e.node;
        else if constexpr (std::is_same_v<E, CoordinatorTimer>)
          return node_of(core::ToCoordinator{});
        else if constexpr (std::is_same_v<E, Happening>)
          return std::nullopt;
        else
          return e.id;
      },
      event);
}

// --- events -------------------------------------------------------------------------------------

template <class T>
bool Protocol<T>::run() {
  for (MemberId id = 0; id < options_.workers; ++id)
    run_worker(id,
               [](core::Worker& worker, const core::Context& context) { worker.start(context); });
  plan_points();
  for (std::uint64_t events = 0; !queue_.empty() && !over_; ++events) {
    if (queue_.next() > options_.horizon) {
      queue_.advance(options_.horizon);
      break;
    }
    if (events >= options_.events_max) {
      error_ = "the job does not come to rest in " + std::to_string(events) + " events";
      break;
    }
    if (step() && on_event) on_event();
  }
  if (!curve_.empty() && curve_.back().at < now()) curve_.push_back(point());
  return error_.empty();
}

/// Handles one event; returns false where it had to wait for a frozen node.
template <class T>
bool Protocol<T>::step() {
  Event event = queue_.pop();
  if (const auto node = node_of(event); node && frozen_until_[*node] > now()) {
    queue_.push(frozen_until_[*node], std::move(event));
    return false;
  }
  std::visit([this](auto& e) { this->happen(e); }, event);
  return true;
}

template <class T>
void Protocol<T>::happen(CoordinatorTimer&) {
  play(node_of(core::ToCoordinator{}), *coordinator_, coordinator_random_,
       &core::Coordinator::on_timer);
}

template <class T>
void Protocol<T>::happen(WorkerTimer& timer) {
  if (incarnation_[timer.id] == timer.incarnation) run_worker(timer.id, &core::Worker::on_timer);
}

template <class T>
void Protocol<T>::happen(Planning& planning) {
  const MemberId id = planning.id;
  const Step step = planning.step;
  if (incarnation_[id] != planning.incarnation) return;
  std::vector<core::RangeRows> wanted;
  try {
    wanted = job_.plan(id, step);
  } catch (const std::exception& fault) {
    return fail_step(id, step, fault.what());
  }
  run_worker(id, [&](core::Worker& worker, const core::Context& context) {
    worker.on_plan(context, step, std::move(wanted));
  });
}

template <class T>
void Protocol<T>::happen(Computing& computing) {
  const MemberId id = computing.id;
  const Step step = computing.compute.step;
  if (incarnation_[id] != computing.incarnation) return;
  core::Update update;
  try {
    update = job_.compute(id, computing.compute);
  } catch (const std::exception& fault) {
    return fail_step(id, step, fault.what());
  }
  run_worker(id, [&](core::Worker& worker, const core::Context& context) {
    worker.on_update(context, step, std::move(update));
  });
}

template <class T>
void Protocol<T>::fail_step(MemberId id, Step step, const std::string& why) {
  run_worker(id, [&](core::Worker& worker, const core::Context& context) {
    worker.on_failure(context, step, why);
  });
}

// --- cores --------------------------------------------------------------------------------------

/// Runs one event of a core that only sends and sets timers.
template <class T>
template <class Core, class What>
void Protocol<T>::play(NodeId node, Core& core, Random& random, What what) {
  core::Effects effects;
  std::invoke(what, core, core::Context{now(), random, effects});
  for (core::Effect& effect : effects) {
    if (auto* mail = std::get_if<core::Send>(&effect))
      send(node, std::move(*mail));
    else
      queue_.push(std::get<core::SetTimer>(effect).at, CoordinatorTimer{});
  }
}

/// Runs one event of a worker, be it alone or half of a peer.
template <class T>
template <class What>
void Protocol<T>::run_worker(MemberId id, What what) {
  if (down_[id] || dead_[id]) return;
  core::Effects effects;
  std::invoke(what, worker(id), core::Context{now(), random_[id], effects});
  note_step(id);
  for (core::Effect& effect : effects) {
    if (interrupt)
      if (const auto down = interrupt(id, effect)) return lose_carrier(id, *down);
    execute(id, effect);
  }
}

template <class T>
void Protocol<T>::execute(MemberId id, core::Effect& effect) {
  if (auto* mail = std::get_if<core::Send>(&effect)) {
    if (on_send) on_send(id, *mail);
    send(id, std::move(*mail));
  } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
    queue_.push(timer->at, WorkerTimer{id, incarnation_[id]});
  } else if (const auto* plan = std::get_if<core::Plan>(&effect)) {
    queue_.push(now(), Planning{id, incarnation_[id], plan->step});
  } else if (auto* read = std::get_if<core::Compute>(&effect)) {
    compute(id, *read);
  } else if (const auto* fail = std::get_if<core::Fail>(&effect)) {
    error_ = fail->why;
    over_ = true;
  }
}

template <class T>
void Protocol<T>::compute(MemberId id, core::Compute& read) {
  if (on_compute) on_compute(id, read);
  const double slowness = options_.slowness.empty() ? 1 : options_.slowness[id];
  const Time took = options_.step_time.draw(step_random_[id]);
  queue_.push(now() + lasting(static_cast<double>(took.count()) * slowness),
              Computing{id, incarnation_[id], std::move(read)});
}

/// Follows the worker's step: counts the workers at each step, and the largest lag.
template <class T>
void Protocol<T>::note_step(MemberId id) {
  if (!running_[id]) return;
  const core::Worker& core = worker(id);
  const bool runs = !core.done() && !dead_[id];
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

// --- messages -----------------------------------------------------------------------------------

template <class T>
void Protocol<T>::send(NodeId from, core::Send mail) {
  const NodeId to = node_of(mail.to);
  if (to == observer() || mourned_.contains({from, to})) return;
  const std::size_t bytes = bytes_of(mail.message, sizeof(T));
  if (from != to) traffic_[mail.message.index()] += {1, bytes + header_bytes};
  if (!channels_ || from == to) {
    for (const Time at : network_.send(now(), from, to, bytes + header_bytes))
      queue_.push(at, Arrival{mail});
    return;
  }
  core::ChannelEffects<core::Send> effects;
  STARLING_CHECK(channel(from, to).send({now(), effects}, std::move(mail)));
  execute(from, to, effects);
}

template <class T>
typename Protocol<T>::Channel& Protocol<T>::channel(NodeId node, NodeId other) {
  return channel_of_.try_emplace({node, other}, 0U, core::Incarnation{0}, options_.channel)
      .first->second;
}

template <class T>
void Protocol<T>::execute(NodeId node, NodeId other, core::ChannelEffects<core::Send>& effects) {
  for (auto& effect : effects) {
    if (auto* out = std::get_if<core::Transmit<core::Send>>(&effect)) {
      const auto& payload = out->packet.payload;
      const std::size_t bytes = payload ? bytes_of(payload->message, sizeof(T)) : 0;
      for (const Time at : network_.send(now(), node, other, bytes + header_bytes))
        queue_.push(at, PacketArrival{node, other, out->packet});
    } else if (const auto* timer = std::get_if<core::SetTimer>(&effect)) {
      queue_.push(timer->at, ChannelTimer{node, other});
    } else if (const auto* in = std::get_if<core::Deliver<core::Send>>(&effect)) {
      deliver(in->payload);
    }
  }
}

template <class T>
void Protocol<T>::happen(PacketArrival& arrival) {
  const auto& [from, to, packet] = arrival;
  if (mourned_.contains({to, from}) || (to < dead_.size() && dead_[to])) return;
  core::ChannelEffects<core::Send> effects;
  channel(to, from).on({now(), effects}, std::move(arrival.packet));
  execute(to, from, effects);
}

template <class T>
void Protocol<T>::happen(ChannelTimer& timer) {
  const auto& [node, other] = timer;
  if (mourned_.contains({node, other}) || (node < dead_.size() && dead_[node])) return;
  core::ChannelEffects<core::Send> effects;
  channel(node, other).on_timer({now(), effects});
  execute(node, other, effects);
}

template <class T>
void Protocol<T>::deliver(const core::Send& mail) {
  const auto hand = [&](auto& core, const core::Context& context) {
    std::visit(
        [&]<class M>(const M& message) {
          constexpr bool takes = core::Takes<std::decay_t<decltype(core)>, M>;
          STARLING_CHECK(takes);
          if constexpr (takes) core.on(context, message);
        },
        mail.message);
  };
  if (const auto* to_worker = std::get_if<core::ToWorker>(&mail.to)) {
    run_worker(to_worker->id, hand);
  } else if (const auto* owner = std::get_if<core::ToOwner>(&mail.to)) {
    if (peers_.empty())
      play(node_of(mail.to), shards_[owner->id], owner_random_, hand);
    else
      play(owner->id, peers_[owner->id], random_[owner->id], hand);
  } else if (std::holds_alternative<core::ToCoordinator>(mail.to)) {
    play(node_of(mail.to), *coordinator_, coordinator_random_, hand);
  }
}

// --- faults -------------------------------------------------------------------------------------

template <class T>
void Protocol<T>::at(Time at, std::function<void()> happening) {
  queue_.push(at, std::move(happening));
}

template <class T>
void Protocol<T>::crash(MemberId id, Time at, Time down) {
  this->at(at, [this, id, down] { lose_carrier(id, down); });
}

template <class T>
void Protocol<T>::lose_carrier(MemberId id, Time down) {
  down_[id] = true;
  ++incarnation_[id];
  at(now() + down, [this, id] {
    if (!down_[id] || dead_[id]) return;
    down_[id] = false;
    run_worker(id, &core::Worker::resume);
    for (MemberId other = 0; other < options_.workers; ++other)  // news that came while it was down
      if (mourned_.contains({id, other}))
        run_worker(id, [other](core::Worker& worker, const core::Context& c) {
          worker.on_left(c, other);
        });
  });
}

template <class T>
void Protocol<T>::freeze(NodeId node, Time at, Time time) {
  this->at(at, [this, node, time] {
    frozen_until_.at(node) = std::max(frozen_until_[node], now() + time);
  });
}

template <class T>
void Protocol<T>::stop(Time at) {
  this->at(at, [this] {
    if (coordinator_) return send(observer(), {core::ToCoordinator{}, core::Stop{}});
    for (MemberId id = 0; id < options_.workers; ++id)
      send(observer(), {core::ToWorker{id}, core::Stop{}});
  });
}

template <class T>
void Protocol<T>::die(MemberId id, Time at) {
  STARLING_CHECK(core::has_servers(options_.mode));
  this->at(at, [this, id] {
    dead_[id] = true;
    ++incarnation_[id];
    note_step(id);
    for (NodeId node = 0; node < nodes(); ++node) {
      if (node == id) continue;
      const Time news = 10 * options_.link.latency.draw(news_random_);
      this->at(now() + news, [this, node, id] { learn_death(node, id); });
    }
  });
}

template <class T>
void Protocol<T>::learn_death(NodeId node, MemberId dead) {
  mourned_.insert({node, dead});
  const auto left = [dead](auto& core, const core::Context& context) {
    core.on_left(context, dead);
  };
  if (node < options_.workers)
    run_worker(node, left);
  else if (node < options_.workers + shards_.size())
    play(node, shards_[node - options_.workers], owner_random_, left);
  else if (node != observer())
    play(node, *coordinator_, coordinator_random_, left);
}

// --- results -------------------------------------------------------------------------------------

template <class T>
std::vector<core::RangeState> Protocol<T>::model() {
  std::vector<core::RangeState> states(job_.layout->ranges.size());
  core::Effects effects;
  const core::Context context{now(), owner_random_, effects};
  for (auto& shard : shards_) shard.on(context, core::Snapshot{1});
  for (auto& peer : peers_) peer.on(context, core::Snapshot{1});
  for (core::Effect& effect : effects) {
    auto& state = std::get<core::RangeState>(std::get<core::Send>(effect).message);
    states[state.range] = std::move(state);
  }
  return states;
}

template <class T>
ProtocolPoint Protocol<T>::point() {
  ProtocolPoint point;
  point.at = now();
  point.updates = updates_;
  std::vector<Step> steps;
  std::size_t waiting = 0;
  for (MemberId id = 0; id < options_.workers; ++id) {
    if (dead_[id]) continue;
    steps.push_back(worker(id).step());
    waiting += worker(id).waiting() ? 1 : 0;
  }
  if (!steps.empty()) {
    std::ranges::sort(steps);
    point.min = steps.front();
    point.median = steps[steps.size() / 2];
    point.max = steps.back();
    point.waiting = static_cast<double>(waiting) / static_cast<double>(steps.size());
  }
  if (job_.evaluate) point.metrics = job_.evaluate(model());
  return point;
}

template <class T>
void Protocol<T>::plan_points() {
  std::optional<Time> every = options_.point_every;
  if (!every && options_.horizon != Time::max())
    every = std::max(Time{1}, options_.horizon / points_of_a_horizon);
  if (every) at(now(), [this, every = *every] { take_point(every); });
}

template <class T>
void Protocol<T>::take_point(Time every) {
  curve_.push_back(point());
  if (on_point && !on_point(curve_.back())) over_ = true;
  if (!queue_.empty()) at(now() + every, [this, every] { take_point(every); });
}

template <class T>
ProtocolResult Protocol<T>::result() {
  ProtocolResult result;
  result.elapsed = std::min(now(), std::ranges::max(ended_at_));
  Time waited{};
  Time lived{};
  for (MemberId id = 0; id < options_.workers; ++id) {
    const core::Worker& core = worker(id);
    const Time end = std::min(result.elapsed, ended_at_[id]);
    const auto counts = core.gate_counts();
    result.steps.push_back(core.step());
    result.draws += counts.draws;
    result.passes += counts.passes;
    waited += core.waited(end);
    lived += end;
  }
  if (coordinator_) {
    result.draws = coordinator_->draws();
    result.passes = coordinator_->passes();
  }
  if (lived > Time{0})
    result.waiting_share = static_cast<double>(waited.count()) / static_cast<double>(lived.count());
  result.curve = curve_;
  result.updates = updates_;
  result.max_lag = max_lag_;
  result.traffic = traffic_;
  result.packets = network_.counts();
  result.model = model();
  result.error = error_;
  return result;
}

template class Protocol<float>;
template class Protocol<double>;

}  // namespace starling::sim
