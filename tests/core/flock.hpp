/// A whole job from the cores alone, for tests: virtual time, seeded delays that reorder messages,
/// messages that come twice, carriers that are lost, workers that die. Single-threaded; one run is
/// a function of its options and its job.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "starling/engine/core/coordinator.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/peer.hpp"

namespace starling::core {

struct FlockOptions {
  Mode mode = Mode::central;
  barrier::Barrier barrier;
  /// The mode's default where absent.
  std::optional<barrier::Recheck> recheck;
  std::size_t workers = 4;
  /// Server shards; as many as workers in peer mode.
  std::size_t shards = 2;
  Step steps = 10;
  std::uint64_t seed = 1;
  /// Messages take up to this long, each its own time.
  Time delay_max = std::chrono::milliseconds{3};
  /// Share of messages that come twice.
  double duplicates = 0.1;
  /// Steps take an exponential time with this mean; worker 0 takes `straggling` times as long.
  Time compute_mean = std::chrono::milliseconds{5};
  double straggling = 3;
  /// Whether pushes of a step are gathered; as the barrier says where absent.
  std::optional<bool> bulk;
};

/// What the workers of a flock learn.
template <class T>
struct FlockJob {
  std::shared_ptr<const Layout> layout;
  std::vector<RangeState> start;
  Applier<T> applier;
  std::function<Update(WorkerId, const Compute&)> compute;
  /// What each step reads; everything where absent.
  std::function<std::vector<RangeRows>(WorkerId, Step)> plan;
};

template <class T>
class Flock {
 public:
  /// Called for each Compute, before it runs.
  std::function<void(WorkerId, const Compute&)> on_compute;
  /// Called after each event.
  std::function<void()> on_event;
  /// Worker, step and time of each pass of a barrier.
  std::vector<std::tuple<WorkerId, Step, Time>> passes;

  Flock(FlockOptions options, FlockJob<T> job)
      : options_(std::move(options)), job_(std::move(job)), network_(stream(~0ULL)) {
    hire();
  }

  /// Runs until nothing is under way. Returns false where that takes too long to be true.
  bool run() {
    for (WorkerId w = 0; w < options_.workers; ++w)
      tell(w, [](Worker& worker, const Context& context) { worker.start(context); });
    for (int events = 0; !queue_.empty(); ++events) {
      if (events > 2'000'000) return false;
      const auto next = queue_.begin();
      now_ = std::max(now_, next->first.first);
      const auto event = std::move(next->second);
      queue_.erase(next);
      event();
      if (on_event) on_event();
    }
    return true;
  }

  /// Loses the carrier of `id` at `at`: its computation, its timers and what is said to it until
  /// another resumes it. A peer's owner half hears all: that is its channel's business.
  void crash(WorkerId id, Time at, Time down) {
    after(at, [this, id] {
      down_[id] = true;
      ++life_[id];
    });
    after(at + down, [this, id] {
      if (!down_[id] || dead_[id]) return;
      down_[id] = false;
      tell(id, [](Worker& worker, const Context& context) { worker.resume(context); });
    });
  }

  /// `id` falls silent at `at`; the others learn of it one by one. Not in peer mode.
  void die(WorkerId id, Time at) {
    after(at, [this, id] {
      dead_[id] = true;
      ++life_[id];
      const auto learn = [&](auto event) { after(now_ + 10 * random_delay(), event); };
      for (WorkerId w = 0; w < options_.workers; ++w)
        if (w != id)
          learn([this, w, id] {
            tell(w, [&](Worker& worker, const Context& c) { worker.on_left(c, id); });
          });
      for (auto& shard : shards_)
        learn([this, &shard, id] {
          play(shard, owner_random_, [&](auto& s, const Context& c) { s.on_left(c, id); });
        });
      if (coordinator_)
        learn([this, id] {
          play(*coordinator_, coordinator_random_,
               [&](auto& k, const Context& c) { k.on_left(c, id); });
        });
    });
  }

  /// Asks the job to stop at `at`, as an observer would.
  void stop(Time at) {
    after(at, [this] {
      if (coordinator_) return send(ToCoordinator{}, Stop{});
      for (WorkerId w = 0; w < options_.workers; ++w) send(ToWorker{w}, Stop{});
    });
  }

  [[nodiscard]] Worker& worker(WorkerId id) {
    return peers_.empty() ? workers_[id] : peers_[id].worker();
  }
  [[nodiscard]] bool dead(WorkerId id) const { return dead_[id]; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] const FlockOptions& options() const { return options_; }
  [[nodiscard]] Coordinator* coordinator() { return coordinator_ ? &*coordinator_ : nullptr; }
  /// Whom the worker asked last, since its last step.
  [[nodiscard]] const std::set<WorkerId>& asked(WorkerId id) const { return asked_[id].second; }

  /// The state of every range, by range.
  [[nodiscard]] std::vector<RangeState> model() {
    std::vector<RangeState> states(job_.layout->ranges.size());
    Effects effects;
    const Context context{now_, owner_random_, effects};
    for (auto& shard : shards_) shard.on(context, Snapshot{1});
    for (auto& peer : peers_) peer.on(context, Snapshot{1});
    for (const Effect& effect : effects) {
      const auto& state = std::get<RangeState>(std::get<Send>(effect).message);
      states[state.range] = state;
    }
    return states;
  }

 private:
  using Happening = std::function<void()>;

  [[nodiscard]] Random stream(std::uint64_t key) const {
    return Random::stream(options_.seed, key);
  }

  void hire() {
    const bool bulk = options_.bulk.value_or(barrier::is_bulk_synchronous(options_.barrier));
    const auto recheck = options_.recheck.value_or(default_recheck(options_.mode));
    const bool servers = has_servers(options_.mode);
    const std::size_t owners = servers ? options_.shards : options_.workers;
    const auto owner_of =
        std::make_shared<const std::vector<OwnerId>>(assign(job_.layout->ranges.size(), owners));
    std::vector<WorkerId> everyone(options_.workers);
    std::iota(everyone.begin(), everyone.end(), WorkerId{0});
    const auto members = std::make_shared<const std::vector<WorkerId>>(everyone);
    std::vector<Shard<T>> shards;
    for (OwnerId id = 0; id < owners; ++id) {
      ShardOptions<T> shard;
      shard.layout = job_.layout;
      shard.applier = job_.applier;
      shard.workers = options_.workers;
      shard.bulk = bulk;
      for (const auto& state : job_.start)
        if ((*owner_of)[state.range] == id) shard.ranges.push_back(state);
      if (servers)
        shards_.emplace_back(std::move(shard));
      else
        peers_.emplace_back(worker_options(id, bulk, recheck, members, owner_of), std::move(shard));
    }
    for (const WorkerId id : everyone) {
      if (servers) workers_.emplace_back(worker_options(id, bulk, recheck, members, owner_of));
      random_.push_back(stream(id));
    }
    if (keeps_steps_centrally(options_.mode))
      coordinator_.emplace(
          CoordinatorOptions{options_.barrier, recheck, std::vector<Step>(options_.workers)});
    down_.resize(options_.workers);
    dead_.resize(options_.workers);
    life_.resize(options_.workers);
    asked_.resize(options_.workers);
  }

  WorkerOptions worker_options(WorkerId id, bool bulk, const barrier::Recheck& recheck,
                               const Members& members, const auto& owner_of) const {
    WorkerOptions worker;
    worker.id = id;
    worker.last = options_.steps;
    worker.central = keeps_steps_centrally(options_.mode);
    worker.bulk = bulk;
    worker.plans = static_cast<bool>(job_.plan);
    worker.barrier = options_.barrier;
    worker.recheck = recheck;
    worker.members = members;
    worker.owner_of = owner_of;
    return worker;
  }

  void after(Time at, Happening event) {
    queue_.emplace(std::pair{at, order_++}, std::move(event));
  }
  Time random_delay() {
    return Time{static_cast<Time::rep>(
        network_.below(static_cast<std::uint64_t>(options_.delay_max.count()) + 1))};
  }

  /// Runs one event of a core that only sends and sets timers.
  template <class Core, class Event>
  void play(Core& core, Random& random, Event event) {
    Effects effects;
    std::invoke(event, core, Context{now_, random, effects});
    for (Effect& effect : effects) {
      if (const auto* timer = std::get_if<SetTimer>(&effect)) {
        ring_at(core, random, timer->at);
      } else {
        const auto& message = std::get<Send>(effect);
        send(message.to, message.message);
      }
    }
  }

  /// Apart from play, which would else instantiate itself without end.
  template <class Core>
  void ring_at(Core& core, Random& random, Time at) {
    if constexpr (requires(const Context& c) { core.on_timer(c); })
      after(std::max(now_, at), [this, &core, &random] { ring(core, random); });
  }
  template <class Core>
  void ring(Core& core, Random& random) {
    play(core, random, &Core::on_timer);
  }

  /// Runs one event of a worker, be it alone or half of a peer.
  template <class Event>
  void tell(WorkerId id, Event event) {
    if (down_[id] || dead_[id]) return;
    Effects effects;
    event(worker(id), Context{now_, random_[id], effects});
    for (Effect& effect : effects) std::visit([&](auto& e) { carry_out(id, e); }, effect);
  }

  /// Has `event` happen to the worker at `at`, if its carrier still lives then.
  template <class Event>
  void tell_at(Time at, WorkerId id, Event event) {
    after(at, [this, id, life = life_[id], event = std::move(event)] {
      if (life_[id] == life) tell(id, event);
    });
  }

  void carry_out(WorkerId id, const Send& send_effect) {
    if (const auto* query = std::get_if<StepQuery>(&send_effect.message)) {
      auto& [draw, members] = asked_[id];
      if (std::exchange(draw, query->draw) != query->draw) members.clear();
      members.insert(std::get<ToWorker>(send_effect.to).id);
    }
    send(send_effect.to, send_effect.message);
  }
  void carry_out(WorkerId id, const SetTimer& timer) {
    tell_at(std::max(now_, timer.at), id,
            [](Worker& worker, const Context& context) { worker.on_timer(context); });
  }
  void carry_out(WorkerId id, const Plan& plan) {
    tell_at(now_, id, [this, id, step = plan.step](Worker& worker, const Context& context) {
      worker.on_plan(context, step, job_.plan(id, step));
    });
  }
  void carry_out(WorkerId id, Compute& compute) {
    passes.emplace_back(id, compute.step, now_);
    if (on_compute) on_compute(id, compute);
    asked_[id].second.clear();
    const double mean =
        static_cast<double>(options_.compute_mean.count()) * (id == 0 ? options_.straggling : 1);
    const Time took{static_cast<Time::rep>(random_[id].exponential(mean))};
    tell_at(now_ + took, id,
            [this, id, compute = std::move(compute)](Worker& worker, const Context& context) {
              worker.on_update(context, compute.step, job_.compute(id, compute));
            });
  }
  void carry_out(WorkerId, const Done&) {}
  void carry_out(WorkerId, const Fail& fail) { throw std::runtime_error{fail.why}; }

  void send(const Address& to, const Message& message) {
    const int copies = network_.real() < options_.duplicates ? 2 : 1;
    for (int i = 0; i < copies; ++i)
      after(now_ + random_delay(), [this, to, message] { deliver(to, message); });
  }

  void deliver(const Address& to, const Message& message) {
    if (const auto* id = std::get_if<ToWorker>(&to)) {
      tell(id->id, [&](Worker& worker, const Context& c) { hand(worker, c, message); });
    } else if (const auto* owner = std::get_if<ToOwner>(&to)) {
      if (peers_.empty())
        play(shards_[owner->id], owner_random_,
             [&](Shard<T>& shard, const Context& c) { hand(shard, c, message); });
      else
        play(peers_[owner->id], random_[owner->id],
             [&](Peer<T>& peer, const Context& c) { hand(peer, c, message); });
    } else if (std::holds_alternative<ToCoordinator>(to)) {
      play(*coordinator_, coordinator_random_,
           [&](Coordinator& k, const Context& c) { hand(k, c, message); });
    }
  }

  template <class Core>
  static void hand(Core& core, const Context& context, const Message& message) {
    std::visit(
        [&]<class M>(const M& m) {
          if constexpr (Takes<Core, M>)
            core.on(context, m);
          else
            throw std::logic_error{"a message for another kind of core"};
        },
        message);
  }

  FlockOptions options_;
  FlockJob<T> job_;
  Random network_;
  Random owner_random_ = stream(1'000'001);
  Random coordinator_random_ = stream(1'000'002);
  std::vector<Random> random_;

  std::vector<Worker> workers_;
  std::vector<Shard<T>> shards_;
  std::vector<Peer<T>> peers_;
  std::optional<Coordinator> coordinator_;

  Time now_{};
  std::uint64_t order_ = 0;
  std::map<std::pair<Time, std::uint64_t>, Happening> queue_;
  std::vector<bool> down_;
  std::vector<bool> dead_;
  /// Counts carriers of each worker.
  std::vector<int> life_;
  /// The last draw of each worker and whom it asked.
  std::vector<std::pair<std::uint64_t, std::set<WorkerId>>> asked_;
};

}  // namespace starling::core
