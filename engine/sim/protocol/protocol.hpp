/// Simulates a whole job in virtual time, message by message: the cores of engine/core run
/// unchanged, each on a node, and every message between them goes over a simulated network that may
/// delay, lose, duplicate and reorder packets, and may be partitioned. Nodes may freeze, workers
/// may die, and a worker may lose its driver: the part that passes events to the core and executes
/// its effects. Another driver then replaces it. The workers compute real updates: models learn.
///
///     sim::ProtocolOptions options;
///     options.barrier = barrier::parse("pssp:s=4,beta=2").value();
///     options.link.loss = 0.3;
///     sim::Protocol protocol{options, job};
///     protocol.run();
///     sim::ProtocolResult result = protocol.result();
///
/// learn.hpp trains a model with a Protocol. Not thread-safe; a run is a function of its options
/// and its job.
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
  /// Absent: the mode's default.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::size_t workers = 4;
  /// The number of servers; ignored in peer mode.
  std::size_t shards = 1;
  /// The number of steps of each worker.
  Step steps = barrier::finished;
  /// The virtual time at which the simulation ends, finished or not.
  Time horizon = Time::max();
  std::uint64_t seed = 1;
  /// The time in which a worker computes an update, before it is multiplied by its slowness.
  Distribution step_time{laws::Exponential{std::chrono::milliseconds{100}}};
  /// A factor of the step time for each worker; empty: 1 for all.
  std::vector<double> slowness = {};
  /// The options of all links. Protocol::network() can change single links.
  LinkOptions link = {};
  /// True if nodes use core::Channel; absent: true if `link` loses packets. Channels are necessary
  /// if packets are lost, because cores do not ask for lost messages again.
  std::optional<bool> channels = std::nullopt;
  core::ChannelOptions channel = {.queue = std::numeric_limits<std::uint32_t>::max()};
  /// True if owners gather the pushes of a step and apply them together; absent: as
  /// barrier::is_bsp() says.
  std::optional<bool> bsp = std::nullopt;
  /// The time between two points of the curve; absent: 200 points up to the horizon, or no points
  /// if there is no horizon.
  std::optional<Time> point_every = std::nullopt;
  /// The run fails after this many events, because the job seems never to end.
  std::uint64_t events_max = std::numeric_limits<std::uint64_t>::max();
};

/// Returns an error if the options cannot run: if core::check() refuses them or check(LinkOptions)
/// refuses `link`, if there is no owner, if neither `steps` nor `horizon` ends the run, if a time
/// is not longer than 0, if packets are lost without channels, or if `slowness` is neither empty
/// nor has one factor for each worker.
[[nodiscard]] Result<void> check(const ProtocolOptions& options);

/// Returns the number of owners: the servers, or in peer mode the peers.
[[nodiscard]] inline std::size_t owner_count(const ProtocolOptions& options) {
  return core::has_servers(options.mode) ? options.shards : options.workers;
}

/// The model of a job, and the functions by which its workers compute.
struct Job {
  std::shared_ptr<const core::Layout> layout;
  /// The state of each range at the start.
  std::vector<core::RangeState> start;
  core::ApplierPtr applier;
  /// Computes an update. It is called when the step's virtual time is over. An exception fails the
  /// step.
  std::function<core::Update(MemberId, const core::Compute&)> compute;
  /// Returns the rows that a step reads; absent if steps read everything.
  std::function<std::vector<core::RangeRows>(MemberId, Step)> plan = {};
  /// Computes the model's metrics for a point of the curve; absent if the curve has none.
  std::function<models::Metrics(const std::vector<core::RangeState>&)> evaluate = {};
};

/// The progress of a job at one moment: the live workers' steps and updates, as in the simulation
/// of steps, and the model's metrics.
struct ProtocolPoint : Point {
  models::Metrics metrics = {};
};

struct ProtocolResult {
  /// The steps at the end, by worker.
  std::vector<Step> steps;
  std::vector<ProtocolPoint> curve;
  std::uint64_t updates = 0;
  /// The numbers of draws of sampled barriers, and of draws that let a worker pass.
  std::uint64_t draws = 0;
  std::uint64_t passes = 0;
  /// The share of the workers' time that they spent waiting at the barrier. A worker's time ends
  /// when it has finished.
  double waiting_share = 0;
  /// The largest difference ever between the steps of two running workers.
  Step max_lag = 0;
  TrafficByKind traffic{};
  Network::Counts packets;
  /// The virtual time at the end: the horizon, or when the last worker finished.
  Time elapsed{};
  /// The state of each range, by range.
  std::vector<core::RangeState> model;
  /// Why the job failed; empty if it did not fail.
  std::string error;
};

/// Not thread-safe. The nodes are numbered in this order: workers (or peers) by their ids; servers
/// and coordinator, if the mode has them; the observer of the job, which sends Stop and receives
/// nothing.
class Protocol {
 public:
  /// Called for each Compute, before it runs.
  std::function<void(MemberId, const core::Compute&)> on_compute;
  /// Called for each message of a worker, before it is sent.
  std::function<void(MemberId, const core::Send&)> on_send;
  /// Called after each event.
  std::function<void()> on_event;
  /// Called at each point of the curve. If it returns false, the run ends.
  std::function<bool(const ProtocolPoint&)> on_point;
  /// Called before each effect of a worker is executed. If it returns a duration, the worker loses
  /// its driver at once, with this effect and the further effects of the event, and gets another
  /// driver after that duration.
  std::function<std::optional<Time>(MemberId, const core::Effect&)> interrupt;

  /// Requires: check(options).
  Protocol(ProtocolOptions options, Job job);

  /// Runs until no event is left, the horizon is reached, `on_point` ends the run, or the job
  /// fails. Returns false if the job took too many events or failed: see error().
  bool run();

  /// Makes worker `id` lose its driver at `at`, and with it the computation, the timers and the
  /// messages to the worker, until another driver resumes the worker after `downtime`. The core's
  /// state and the node survive: channels go on, and the owner in a peer receives all messages.
  void crash(MemberId id, Time at, Time downtime);

  /// Makes worker `id` die at `at`; the other nodes learn of its death one by one. Requires: the
  /// mode is not peer.
  void die(MemberId id, Time at);

  /// Freezes the node from `at` for `duration`: all its events wait until the end.
  void freeze(NodeId node, Time at, Time duration);

  /// Sends Stop at `at`, as the observer of a job does.
  void stop(Time at);

  /// Calls `action` at `at`, for example to partition and heal links.
  void at(Time at, std::function<void()> action);

  [[nodiscard]] Network& network() noexcept { return network_; }
  [[nodiscard]] core::Worker& worker(MemberId id) {
    return peers_.empty() ? workers_[id] : peers_[id].worker();
  }
  [[nodiscard]] core::Coordinator* coordinator() { return coordinator_ ? &*coordinator_ : nullptr; }
  [[nodiscard]] bool is_dead(MemberId id) const { return dead_[id]; }
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

  /// The arrival of a message that was sent without a channel.
  struct Arrival {
    core::Send addressed;
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
  // The next three are events of a worker. They have an effect only if the worker still has the
  // driver with this `incarnation`.
  struct WorkerTimer {
    MemberId id;
    std::uint32_t incarnation;
  };
  /// The worker's plan of a step is due.
  struct PlanDue {
    MemberId id;
    std::uint32_t incarnation;
    Step step;
  };
  /// The time of a step is over: the worker's update is due.
  struct UpdateDue {
    MemberId id;
    std::uint32_t incarnation;
    core::Compute compute;
  };
  using Action = std::function<void()>;
  using Event = std::variant<Action, Arrival, PacketArrival, ChannelTimer, CoordinatorTimer,
                             WorkerTimer, PlanDue, UpdateDue>;

  void spawn_members();
  core::WorkerOptions worker_options(MemberId id) const;
  [[nodiscard]] NodeId observer() const;
  [[nodiscard]] std::optional<NodeId> node_of(const Event& event) const;

  bool handle_next_event();
  void handle(Action& action) { action(); }
  void handle(Arrival& arrival) { deliver(arrival.addressed); }
  void handle(PacketArrival& arrival);
  void handle(ChannelTimer& timer);
  void handle(CoordinatorTimer&);
  void handle(WorkerTimer& timer);
  void handle(PlanDue& due);
  void handle(UpdateDue& due);

  template <class Core, class Call>
  void run_event(NodeId node, Core& core, Random& random, Call call);
  template <class Call>
  void run_worker(MemberId id, Call call);
  void fail_step(MemberId id, Step step, const std::string& why);
  void execute(MemberId id, core::Effect& effect);
  void compute(MemberId id, core::Compute& compute);
  void lose_driver(MemberId id, Time downtime);
  void follow_step(MemberId id);
  void notice_death(NodeId node, MemberId dead);

  void send(NodeId from, core::Send addressed);
  void deliver(const core::Send& addressed);
  Channel& channel(NodeId node, NodeId other);
  void execute(NodeId node, NodeId other, core::ChannelEffects<core::Send>& effects);

  [[nodiscard]] ProtocolPoint make_point();
  void schedule_points();
  void add_point(Time every);

  ProtocolOptions options_;
  Job job_;
  barrier::Recheck recheck_;
  bool bsp_;
  bool channels_;
  /// The owner of each range, by range.
  std::shared_ptr<const std::vector<core::OwnerId>> owner_of_;
  core::WorkerIds members_;

  Queue<Event> queue_;
  Network network_;
  /// Independent streams of the seed: for the owners, for the coordinator, for the times at which
  /// nodes learn of deaths, and, by worker, for its draws and for its step times.
  Random owner_random_;
  Random coordinator_random_;
  Random news_random_;
  std::vector<Random> random_;
  std::vector<Random> step_random_;

  std::vector<core::Worker> workers_;
  std::vector<core::Shard> shards_;
  std::vector<core::Peer> peers_;
  std::optional<core::Coordinator> coordinator_;
  std::map<std::pair<NodeId, NodeId>, Channel> channel_of_;
  /// Pairs of a node and a dead worker of whose death the node knows.
  std::set<std::pair<NodeId, NodeId>> known_deaths_;

  std::vector<bool> driver_lost_;
  std::vector<bool> dead_;
  /// By worker: the number of its present driver.
  std::vector<std::uint32_t> incarnation_;
  std::vector<Time> frozen_until_;

  /// By worker, after its last event: its step, and whether it runs.
  std::vector<Step> step_of_;
  std::vector<bool> running_;
  /// By worker: when it finished or died; Time::max() while it runs.
  std::vector<Time> ended_at_;
  /// The number of running workers at each step.
  std::map<Step, std::size_t> workers_at_;
  Step max_lag_ = 0;
  std::uint64_t updates_ = 0;
  TrafficByKind traffic_{};
  std::vector<ProtocolPoint> curve_;
  bool is_over_ = false;
  std::string error_;
};

}  // namespace starling::sim
