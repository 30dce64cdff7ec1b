/// A whole job in virtual time: the cores of engine/core, unchanged, each on a node, and every
/// message between them over a simulated network that may delay, lose, repeat, reorder and cut.
/// Nodes freeze, carriers of workers are lost and replaced, workers die. What the workers compute
/// is real: models learn.
///
///     sim::ProtocolOptions options;
///     options.barrier = barrier::parse("pssp:s=4,beta=2").value();
///     options.link.loss = 0.3;
///     sim::Protocol<float> protocol{options, job};
///     protocol.run();
///     sim::ProtocolResult result = protocol.result();
///
/// To train a model so, see sim/learn.hpp. One thread; a run is a function of its options and job.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/distribution.hpp"
#include "starling/engine/core/channel.hpp"
#include "starling/engine/core/coordinator.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/peer.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/queue.hpp"
#include "starling/engine/sim/steps.hpp"
#include "starling/engine/sim/traffic.hpp"
#include "starling/models/model.hpp"

namespace starling::sim {

struct ProtocolOptions {
  core::Mode mode = core::Mode::central;
  barrier::Barrier barrier = {};
  /// The mode's default where absent.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::size_t workers = 4;
  /// Server shards; peer mode has none.
  std::size_t shards = 1;
  /// Steps of each worker.
  Step steps = barrier::finished;
  /// The job ends where it stands.
  Time horizon = Time::max();
  std::uint64_t seed = 1;
  /// Of a step's computation, times the worker's slowness.
  Distribution step_time{laws::Exponential{std::chrono::milliseconds{100}}};
  /// By worker; empty: everyone at full speed.
  std::vector<double> slowness = {};
  /// Of every link; for single ones see Protocol::network.
  LinkOptions link = {};
  /// Whether nodes speak through core::Channel; absent: where links lose packets. Needed wherever
  /// something is lost: cores ask for nothing twice.
  std::optional<bool> channels = std::nullopt;
  core::ChannelOptions channel = {.queue = std::numeric_limits<std::uint32_t>::max()};
  /// Whether pushes of a step are gathered; as the barrier says where absent.
  std::optional<bool> bsp = std::nullopt;
  /// Points of the curve; absent: 200 up to the horizon, none where there is no horizon.
  std::optional<Time> point_every = std::nullopt;
  /// A job that takes more events than this is stopped as one that never ends.
  std::uint64_t events_max = std::numeric_limits<std::uint64_t>::max();
};

/// Refuses what cannot run: see core::check, sim::check for links, loss without channels, neither
/// steps nor horizon, a wrong number of slownesses.
[[nodiscard]] Result<void> check(const ProtocolOptions& options);

/// Owners of ranges: servers, or peers.
[[nodiscard]] inline std::size_t owners(const ProtocolOptions& options) {
  return core::has_servers(options.mode) ? options.shards : options.workers;
}

/// What the workers do.
template <class T>
struct Job {
  std::shared_ptr<const core::Layout> layout;
  /// The content of each range at the start.
  std::vector<core::RangeState> start;
  core::Applier<T> applier;
  /// Called when the step's time is over. What it throws is a failure of the step.
  std::function<core::Update(MemberId, const core::Compute&)> compute;
  /// What each step reads; everything where absent.
  std::function<std::vector<core::RangeRows>(MemberId, Step)> plan = {};
  /// Figures of the model for the curve; none where absent.
  std::function<models::Metrics(const std::vector<core::RangeState>&)> evaluate = {};
};

/// How a job stands: as at the step level, over the workers that live, and the model's figures.
struct ProtocolPoint : Point {
  models::Metrics metrics = {};
};

struct ProtocolResult {
  /// By worker.
  std::vector<Step> steps;
  std::vector<ProtocolPoint> curve;
  std::uint64_t updates = 0;
  /// Of sampled barriers.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// Of the workers' time, each one's until it was done, the share spent waiting at the barrier.
  double waiting_share = 0;
  /// The largest spread of the steps of those who run, ever.
  Step max_lag = 0;
  TrafficByKind traffic{};
  Network::Counts packets;
  /// The horizon, or when the last worker was done.
  Time elapsed{};
  /// By range.
  std::vector<core::RangeState> model;
  /// Why the job failed; empty where it did not.
  std::string error;
};

/// One at a time; not thread-safe. Nodes are numbered so: workers (or peers) by their ids, then
/// shards, coordinator and observer, as far as the mode has them.
template <class T>
class Protocol {
 public:
  /// Called for each Compute, before it runs.
  std::function<void(MemberId, const core::Compute&)> on_compute;
  /// Called for each message of a worker, before it is sent.
  std::function<void(MemberId, const core::Send&)> on_send;
  /// Called after each event.
  std::function<void()> on_event;
  /// Called at each point of the curve; false ends the run.
  std::function<bool(const ProtocolPoint&)> on_point;
  /// A fault inside a core: asked before each effect of a worker is carried out. A time means that
  /// its carrier is lost right there, with this and the event's further effects, and is replaced
  /// after that time.
  std::function<std::optional<Time>(MemberId, const core::Effect&)> interrupt;

  /// Requires: check(options).
  Protocol(ProtocolOptions options, Job<T> job);

  /// Runs until nothing is under way, the horizon is reached, or the job has failed. False where it
  /// took too many events, or failed: see error().
  bool run();

  /// Loses the carrier of `id` at `at`: its computation, its timers and what is said to it until
  /// another resumes it, `down` later. The core's state outlives it, as does its node: channels go
  /// on, and a peer's owner half hears all.
  void crash(MemberId id, Time at, Time down);

  /// `id` falls silent at `at`; the others learn of it one by one. Not in peer mode.
  void die(MemberId id, Time at);

  /// Everything that concerns the node waits from `at` for `time`.
  void freeze(NodeId node, Time at, Time time);

  /// Asks the job to stop at `at`, as an observer would.
  void stop(Time at);

  /// Calls `happening` at `at`, as to cut and heal links.
  void at(Time at, std::function<void()> happening);

  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] core::Worker& worker(MemberId id) {
    return peers_.empty() ? workers_[id] : peers_[id].worker();
  }
  [[nodiscard]] core::Coordinator* coordinator() { return coordinator_ ? &*coordinator_ : nullptr; }
  [[nodiscard]] bool dead(MemberId id) const { return dead_[id]; }
  [[nodiscard]] NodeId nodes() const { return observer() + 1; }
  [[nodiscard]] NodeId node_of(const core::Address& address) const;
  [[nodiscard]] Time now() const { return queue_.now(); }
  [[nodiscard]] const ProtocolOptions& options() const { return options_; }
  [[nodiscard]] const std::string& error() const { return error_; }

  /// The state of every range, by range.
  [[nodiscard]] std::vector<core::RangeState> model();
  [[nodiscard]] ProtocolResult result();

 private:
  using Channel = core::Channel<core::Send>;

  /// A message comes without a channel.
  struct Arrival {
    core::Send mail;
  };
  struct PacketArrival {
    NodeId from;
    NodeId to;
    core::Packet<core::Send> packet;
  };
  struct ChannelTimer {
    NodeId node;
    NodeId other;
  };
  struct CoordinatorTimer {};
  /// What concerns a worker as long as its carrier is of this incarnation.
  struct WorkerTimer {
    MemberId id;
    std::uint32_t incarnation;
  };
  struct Planning {
    MemberId id;
    std::uint32_t incarnation;
    Step step;
  };
  struct Computing {
    MemberId id;
    std::uint32_t incarnation;
    core::Compute compute;
  };
  using Happening = std::function<void()>;
  using Event = std::variant<Happening, Arrival, PacketArrival, ChannelTimer, CoordinatorTimer,
                             WorkerTimer, Planning, Computing>;

  void spawn_members();
  core::WorkerOptions worker_options(MemberId id) const;
  [[nodiscard]] NodeId observer() const;
  [[nodiscard]] std::optional<NodeId> node_of(const Event& event) const;

  bool step();
  void happen(Happening& happening) { happening(); }
  void happen(Arrival& arrival) { deliver(arrival.mail); }
  void happen(PacketArrival& arrival);
  void happen(ChannelTimer& timer);
  void happen(CoordinatorTimer&);
  void happen(WorkerTimer& timer);
  void happen(Planning& planning);
  void happen(Computing& computing);

  template <class Core, class What>
  void play(NodeId node, Core& core, Random& random, What what);
  template <class What>
  void run_worker(MemberId id, What what);
  void fail_step(MemberId id, Step step, const std::string& why);
  void execute(MemberId id, core::Effect& effect);
  void compute(MemberId id, core::Compute& compute);
  void lose_carrier(MemberId id, Time down);
  void note_step(MemberId id);
  void learn_death(NodeId node, MemberId dead);

  void send(NodeId from, core::Send mail);
  void deliver(const core::Send& mail);
  Channel& channel(NodeId node, NodeId other);
  void execute(NodeId node, NodeId other, core::ChannelEffects<core::Send>& effects);

  [[nodiscard]] ProtocolPoint point();
  void plan_points();
  void take_point(Time every);

  ProtocolOptions options_;
  Job<T> job_;
  barrier::Recheck recheck_;
  bool bsp_;
  bool channels_;
  std::shared_ptr<const std::vector<core::OwnerId>> owner_of_;
  core::Members members_;

  Queue<Event> queue_;
  Network network_;
  /// Streams of the seed: what the network does, what each core draws, how long steps take.
  Random owner_random_;
  Random coordinator_random_;
  Random news_random_;
  std::vector<Random> random_;
  std::vector<Random> step_random_;

  std::vector<core::Worker> workers_;
  std::vector<core::Shard<T>> shards_;
  std::vector<core::Peer<T>> peers_;
  std::optional<core::Coordinator> coordinator_;
  std::map<std::pair<NodeId, NodeId>, Channel> channel_of_;
  /// Nodes that know of another's death, as (node, dead).
  std::set<std::pair<NodeId, NodeId>> mourned_;

  std::vector<bool> down_;
  std::vector<bool> dead_;
  /// Counts carriers of each worker.
  std::vector<std::uint32_t> incarnation_;
  std::vector<Time> frozen_until_;

  /// As of each worker's last event.
  std::vector<Step> step_of_;
  std::vector<bool> running_;
  /// When each worker was done or died; Time::max() where it still runs.
  std::vector<Time> ended_at_;
  /// How many of the running stand at each step.
  std::map<Step, std::size_t> workers_at_;
  Step max_lag_ = 0;
  std::uint64_t updates_ = 0;
  TrafficByKind traffic_{};
  std::vector<ProtocolPoint> curve_;
  bool over_ = false;
  std::string error_;
};

extern template class Protocol<float>;
extern template class Protocol<double>;

}  // namespace starling::sim
