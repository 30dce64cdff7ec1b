/// A whole job in virtual time: the cores of engine/core, unchanged, each on a node, and every
/// message between them over a simulated network that may delay, lose, repeat, reorder and
/// partition. Nodes freeze, carriers of workers are lost and replaced, workers die. The workers
/// really compute: models learn.
///
///     sim::ProtocolOptions options;
///     options.barrier = barrier::parse("pssp:s=4,beta=2").value();
///     options.link.loss = 0.3;
///     sim::Protocol<float> protocol{options, job};
///     protocol.run();
///     sim::ProtocolResult result = protocol.result();
///
/// learn.hpp trains a model in this way. One thread; a run is a function of its options and
/// job.
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

#include "starling/base/distributions/distribution.hpp"
#include "starling/engine/core/channel/channel.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/worker/coordinator.hpp"
#include "starling/engine/exchange/ownership/peer.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/protocol/traffic.hpp"
#include "starling/engine/sim/queue.hpp"
#include "starling/engine/sim/steps/steps.hpp"
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
  /// Virtual time at which the job ends, however far it is.
  Time horizon = Time::max();
  std::uint64_t seed = 1;
  /// Time of a step's computation, multiplied by the worker's slowness.
  Distribution step_time{laws::Exponential{std::chrono::milliseconds{100}}};
  /// By worker; empty: all at full speed.
  std::vector<double> slowness = {};
  /// Options of every link; for single links see Protocol::network.
  LinkOptions link = {};
  /// Whether nodes use core::Channel; absent: where `link` loses packets. Needed wherever packets
  /// are lost, because cores never ask for a message again.
  std::optional<bool> channels = std::nullopt;
  core::ChannelOptions channel = {.queue = std::numeric_limits<std::uint32_t>::max()};
  /// Whether owners gather the pushes of a step; absent: as barrier::is_bsp() says.
  std::optional<bool> bsp = std::nullopt;
  /// Time between points of the curve; absent: 200 points up to the horizon, none where there is no
  /// horizon.
  std::optional<Time> point_every = std::nullopt;
  /// A job that takes more events than this is stopped, because it seems never to end.
  std::uint64_t events_max = std::numeric_limits<std::uint64_t>::max();
};

/// Refuses options that cannot run: see core::check, sim::check for links, loss without channels,
/// neither steps nor horizon, a wrong number of slownesses.
[[nodiscard]] Result<void> check(const ProtocolOptions& options);

/// Returns the number of owners of ranges: servers, or peers.
[[nodiscard]] inline std::size_t owners(const ProtocolOptions& options) {
  return core::has_servers(options.mode) ? options.shards : options.workers;
}

/// The model that a job's workers learn, and their computation.
template <class T>
struct Job {
  std::shared_ptr<const core::Layout> layout;
  /// The content of each range at the start.
  std::vector<core::RangeState> start;
  core::Applier<T> applier;
  /// Called when the step's time is over; an exception fails the step.
  std::function<core::Update(MemberId, const core::Compute&)> compute;
  /// Returns the rows that each step reads; absent where steps read everything.
  std::function<std::vector<core::RangeRows>(MemberId, Step)> plan = {};
  /// Computes figures of the model for the curve; absent where the curve has none.
  std::function<models::Metrics(const std::vector<core::RangeState>&)> evaluate = {};
};

/// The state of a job at one moment: as at the step level, over the workers that live, and the
/// model's figures.
struct ProtocolPoint : Point {
  models::Metrics metrics = {};
};

struct ProtocolResult {
  /// By worker.
  std::vector<Step> steps;
  std::vector<ProtocolPoint> curve;
  std::uint64_t updates = 0;
  /// Draws of sampled barriers, and those that let a worker pass.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// The share of the workers' time, each until it was done, that they spent waiting at the
  /// barrier.
  double waiting_share = 0;
  /// The largest spread that there ever was between the steps of running workers.
  Step max_lag = 0;
  TrafficByKind traffic{};
  Network::Counts packets;
  /// Virtual time at the end: the horizon, or when the last worker was done.
  Time elapsed{};
  /// By range.
  std::vector<core::RangeState> model;
  /// Why the job failed; empty where it did not.
  std::string error;
};

/// Not thread-safe. Nodes are numbered: workers (or peers) by their ids, then shards, coordinator
/// and observer, as far as the mode has them.
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
  /// A fault inside a core: called before each effect of a worker is executed. If it returns a
  /// time, the worker's carrier is lost right there, with this effect and the event's further
  /// effects, and is replaced after that time.
  std::function<std::optional<Time>(MemberId, const core::Effect&)> interrupt;

  /// Requires: check(options).
  Protocol(ProtocolOptions options, Job<T> job);

  /// Runs until no event is left, the horizon is reached, `on_point` ends the run, or the job has
  /// failed. Returns false where the job took too many events, or failed: see error().
  bool run();

  /// Loses the carrier of `id` at `at`: its computation, its timers and the messages to it, until
  /// another carrier resumes the worker `down` later. The core's state survives, as does its node:
  /// channels go on, and a peer's owner half receives all messages.
  void crash(MemberId id, Time at, Time down);

  /// Makes `id` fall silent at `at`; the others learn of its death one by one. Not in peer mode.
  void die(MemberId id, Time at);

  /// Makes everything that concerns the node wait from `at` for `time`.
  void freeze(NodeId node, Time at, Time time);

  /// Asks the job to stop at `at`, as an observer would.
  void stop(Time at);

  /// Calls `happening` at `at`, for example to partition and heal links.
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

  /// Returns the state of every range, by range.
  [[nodiscard]] std::vector<core::RangeState> model();
  [[nodiscard]] ProtocolResult result();

 private:
  using Channel = core::Channel<core::Send>;

  /// A message that comes without a channel.
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
  /// An event of a worker, which is ignored unless its carrier is still of this incarnation.
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
  /// Streams of the seed: draws of the owners, of the coordinator, of news of deaths and of each
  /// worker, and step times.
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
  /// Pairs (node, dead): the node knows of the other's death.
  std::set<std::pair<NodeId, NodeId>> mourned_;

  std::vector<bool> down_;
  std::vector<bool> dead_;
  /// By worker: the number of its carrier.
  std::vector<std::uint32_t> incarnation_;
  std::vector<Time> frozen_until_;

  /// As of each worker's last event.
  std::vector<Step> step_of_;
  std::vector<bool> running_;
  /// When each worker was done or died; Time::max() where it still runs.
  std::vector<Time> ended_at_;
  /// How many running workers stand at each step.
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
