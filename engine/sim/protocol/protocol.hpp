/// Simulates a whole job in virtual time, message by message: each member of the job is a
/// core::MemberCore, as in a live job, and every message between two members goes over a simulated
/// network that may delay, lose, duplicate and reorder packets, and may be partitioned. Members may
/// freeze and die. The workers compute real updates: models learn.
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
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/distributions/distribution.hpp"
#include "starling/engine/core/member/member_core.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/sim/absences.hpp"
#include "starling/engine/sim/network.hpp"
#include "starling/engine/sim/protocol/traffic.hpp"
#include "starling/engine/sim/queue.hpp"
#include "starling/engine/sim/steps/steps.hpp"
#include "starling/models/model.hpp"
#include "starling/models/sample_order.hpp"

namespace starling::sim {

struct ProtocolOptions {
  core::Mode mode = core::Mode::central;
  /// The name of an exchange (core/training/exchanges.hpp).
  std::string exchange = "owners";
  /// core::ExchangeOptions::cache.
  bool cache = false;
  /// core::ExchangeOptions::rounds_to_bf16.
  bool rounds_to_bf16 = false;
  barrier::Barrier barrier = {};
  /// Absent: the mode's default.
  std::optional<barrier::Recheck> recheck = std::nullopt;
  std::size_t workers = 4;
  /// The number of servers; ignored in peer mode.
  std::size_t shards = 1;
  /// The number of steps of each worker.
  Step steps = barrier::unlimited;
  /// The virtual time at which the simulation ends, finished or not.
  Time horizon = Time::max();
  std::uint64_t seed = 1;
  /// The time in which a worker computes an update, before it is multiplied by its slowness. If
  /// batches are dynamic, the time for an equal part of the total batch; it grows in proportion to
  /// the samples. If workers hand in early, the time for a whole batch; each sample takes an equal
  /// part of it.
  Distribution step_time{laws::Exponential{std::chrono::milliseconds{100}}};
  /// If this function is set, it returns the time of each step, above 0, in place of `step_time`.
  /// It is called when a step begins, with the number of steps that the worker has finished.
  std::function<Time(MemberId worker, Step finished)> step_time_of = {};
  /// A factor of the step time for each worker; empty: 1 for all.
  std::vector<double> slowness = {};
  /// For each worker, when it is away: all events at its member wait, and it computes nothing;
  /// empty: never. No member suspects it.
  std::vector<Absence> absences = {};
  /// The options of all links. Protocol::network() can change single links.
  LinkOptions link = {};
  /// True: the members are those of a job on several nodes, one member a node: they send packets
  /// through channels, ranges have replicas, and a council decides who is a member. False: they are
  /// those of a job in one process, whose messages the network must not lose. Absent: true if
  /// `link` loses packets.
  std::optional<bool> channels = std::nullopt;
  core::ChannelOptions channel = {.queue = std::numeric_limits<std::uint32_t>::max()};
  /// The number of owners of each range, if the job is on several nodes; at least 1. If there are
  /// fewer owners, all of them own each range.
  std::size_t replication_factor = 2;
  /// The time between two points of the curve; absent: 200 points up to the horizon, or no points
  /// if there is no horizon.
  std::optional<Time> point_every = std::nullopt;
  /// The run fails after this many events, because the job seems never to end.
  std::uint64_t events_max = std::numeric_limits<std::uint64_t>::max();
};

/// Returns an error if the options cannot run: if core::check() refuses them or check(LinkOptions)
/// refuses `link`, if there is no owner or the replication factor is 0, if neither `steps` nor
/// `horizon` ends the run, if a time is not longer than 0, if packets are lost without channels, or
/// if `slowness` or `absences` is neither empty nor has one entry for each worker.
[[nodiscard]] Result<void> check(const ProtocolOptions& options);

/// Returns true if the members are those of a job on several nodes.
[[nodiscard]] inline bool has_channels(const ProtocolOptions& options) {
  return options.channels.value_or(options.link.loss > 0);
}

/// Returns the number of owners: the servers, or in peer mode the peers.
[[nodiscard]] inline std::size_t owner_count(const ProtocolOptions& options) {
  return core::has_servers(options.mode) ? options.shards : options.workers;
}

/// The model of a job, and the functions by which its workers compute.
struct Job {
  std::shared_ptr<const core::Layout> layout;
  /// The state of each range at the start.
  std::vector<core::RangeState> initial_states;
  core::ApplierPtr applier;
  /// ExchangeOptions::has_early_parts: the parts of an update are there when share_of_time()
  /// (early_parts.hpp) says.
  bool has_early_parts = false;
  /// How the training data is dealt; without samples if the job has none.
  core::DealOptions deal = {};
  /// Computes an update. It is called when the step's virtual time is over or, if parts come early,
  /// when the first ones are due. An exception fails the step.
  std::function<core::Update(MemberId, const core::Compute&)> compute;
  /// Returns the rows that a step reads; absent if steps read everything.
  std::function<std::vector<core::RangeRows>(MemberId, const core::Plan&)> plan = {};
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
  core::ReadCounts reads = {};
  /// The share of the workers' time that they spent waiting at the barrier. A worker's time ends
  /// when it has finished.
  double waiting_share = 0;
  /// The largest difference ever between the steps of two running workers.
  Step max_lag = 0;
  /// If workers hand in early: the longest time during which some sample contributed to no update.
  std::optional<Time> longest_gap = std::nullopt;
  TrafficByKind traffic{};
  Network::Counts packets;
  /// The virtual time at the end: the horizon, or when the last worker finished.
  Time elapsed{};
  /// The state of each range, by range.
  std::vector<core::RangeState> model;
  /// Why the job failed; empty if it did not fail.
  std::string error;
};

/// Not thread-safe. Each member is alone on a node, which has the member's id: first the workers
/// (or peers), then the servers and the coordinator, if the mode has them.
class Protocol {
 public:
  /// Called for each Compute, before it runs.
  std::function<void(MemberId, const core::Compute&)> on_compute;
  /// Called for each update, once it is computed.
  std::function<void(MemberId, const core::Compute&, const core::Update&)> on_update;
  /// Called for each message from one member to another, before it is sent for the first time.
  std::function<void(MemberId from, MemberId to, const core::PeerMessage&)> on_send;
  /// Called after each event.
  std::function<void()> on_event;
  /// Called at each point of the curve. If it returns false, the run ends.
  std::function<bool(const ProtocolPoint&)> on_point;

  /// Requires: check(options).
  Protocol(ProtocolOptions options, Job job);

  /// Runs until every worker has finished or died and the model has its updates, the horizon is
  /// reached, `on_point` ends the run, or the job fails. Returns false if the job failed or took
  /// too many events: see error().
  bool run();

  /// Makes member `id` die at `at`; the others suspect it one by one. Requires:
  /// has_channels(options).
  void die(MemberId id, Time at);

  /// Freezes the member from `at` for `duration`: all its events wait until the end. No member
  /// suspects it.
  void freeze(MemberId id, Time at, Time duration);

  /// Stops the job at `at`: tells the coordinator to stop if the job is in one process and has one,
  /// or else each worker.
  void stop(Time at);

  /// Calls `action` at `at`, for example to partition and heal links.
  void at(Time at, std::function<void()> action);

  [[nodiscard]] Network& network() noexcept { return network_; }
  /// True once the member has a worker, at the beginning of the run at the latest.
  [[nodiscard]] bool has_worker(MemberId id) const { return training(id).worker() != nullptr; }
  /// Requires: has_worker(id).
  [[nodiscard]] const core::Worker& worker(MemberId id) const { return *training(id).worker(); }
  /// Returns the coordinator, or the last one if there were several; nullptr if there is none.
  [[nodiscard]] const core::Coordinator* coordinator() const;
  [[nodiscard]] bool is_dead(MemberId id) const { return nodes_[id].is_dead; }
  [[nodiscard]] NodeId nodes() const { return static_cast<NodeId>(nodes_.size()); }
  [[nodiscard]] Time now() const { return queue_.now(); }
  [[nodiscard]] const ProtocolOptions& options() const { return options_; }
  [[nodiscard]] const std::string& error() const { return error_; }

  /// Returns the state of every range, by range, as the range's primary has it.
  [[nodiscard]] std::vector<core::RangeState> model();
  [[nodiscard]] ProtocolResult result();

 private:
  [[nodiscard]] const core::Training& training(MemberId id) const {
    return nodes_[id].core->role<core::Training>();
  }
  struct Node {
    std::unique_ptr<core::MemberCore> core;
    /// The member's own random numbers.
    Random random;
    /// Draws the times of the worker's steps.
    Random step_random;
    bool is_dead = false;
    Time frozen_until{};
    /// After the node's last event: the worker's step, and whether the worker runs.
    Step step = 0;
    bool is_running = false;
    /// When the worker finished or died; Time::max() while it runs.
    Time ended_at = Time::max();
    /// If workers hand in early: what the worker computes now, from when and until when.
    struct Computing {
      core::Compute compute;
      Time began_at;
      Time due_at;
    };
    std::optional<Computing> computing = std::nullopt;
    /// If parts come early: the number of the last Compute, and its update once a part is there.
    std::uint64_t computations = 0;
    std::optional<core::Update> early_update = std::nullopt;
  };

  /// An event at no member.
  using Action = std::function<void()>;
  /// An event of the member `at` for which there is no type below.
  struct MemberEvent {
    MemberId at;
    std::function<void(core::MemberCore&, const core::MemberContext&)> call;
  };
  struct TimerDue {
    MemberId at;
    core::TimerKey key;
  };
  struct PlanDue {
    MemberId at;
    core::Plan plan;
  };
  /// The time of a step is over: the worker's update is due.
  struct UpdateDue {
    MemberId at;
    core::Compute compute;
    /// The value of Node::computations when the step began.
    std::uint64_t computation = 0;
  };
  /// The parts of a bucket, and of all ranges behind it, are due: the ranges from `first` on.
  struct PartsDue : UpdateDue {
    core::RangeId first = 0;
  };
  /// If workers hand in early: the worker's update is due, unless the worker was told meanwhile to
  /// hand in, so that its update is due at another time.
  struct HandInDue {
    MemberId at;
    Time due_at;
  };
  /// An Envelope or a LocalMessage arrives at the member to which it is addressed.
  using Event = std::variant<Action, MemberEvent, core::Envelope, core::LocalMessage, TimerDue,
                             PlanDue, PartsDue, UpdateDue, HandInDue>;

  void make_members();
  [[nodiscard]] core::ConfigurationPtr first_configuration() const;
  static std::optional<MemberId> member_of(const Event& event);

  bool handle_next_event();
  [[nodiscard]] bool is_model_whole() const;
  void handle(Action& action) { action(); }
  void handle(MemberEvent& event) { run_member(event.at, event.call); }
  void handle(core::Envelope& envelope);
  void handle(core::LocalMessage& message);
  void handle(TimerDue& due);
  void handle(PlanDue& due);
  void handle(PartsDue& due);
  void handle(UpdateDue& due);
  /// Computes the update, and fails the step if computing throws.
  [[nodiscard]] std::optional<core::Update> compute(const UpdateDue& due);
  void handle(HandInDue& due);
  void fail_step(MemberId id, Step step, const std::string& why);

  template <class Call>
  void run_member(MemberId id, Call call);
  void execute(MemberId id, core::Dispatch& dispatch);
  void execute(MemberId id, core::LocalMessage& message);
  void execute(MemberId id, const core::MemberTimer& timer);
  void execute(MemberId id, const core::Plan& plan);
  void execute(MemberId id, core::Compute& read);
  void execute(MemberId id, const core::HandInNow& hand_in);
  [[nodiscard]] double relative_size(const core::Compute& compute) const;
  void execute(MemberId, const core::Done&) {}
  void execute(MemberId, const core::ObservedState&) {}
  void execute(MemberId, const core::MemberAnswer&) {}
  void execute(MemberId, const core::IsIn<core::FlowOutputs> auto&) {
    STARLING_CHECK(!"an effect of another role");
  }
  void execute(MemberId, const core::Fail& failure) { end(failure.why); }
  void execute(MemberId id, const core::Excluded&);
  void end(std::string error);
  /// Records when samples are visited, if workers hand in early.
  void count_visits(const core::Compute& compute, const core::Update& update);
  [[nodiscard]] std::size_t size_of(const core::PeerMessage& message) const;
  void count_message(MemberId from, MemberId to, const core::PeerMessage& message);
  void follow_step(MemberId id);

  [[nodiscard]] ProtocolPoint make_point();
  void schedule_points();
  void add_point(Time every);

  ProtocolOptions options_;
  Job job_;

  /// The buckets in which workers give their updates; empty if they give whole ones.
  std::vector<core::Bucket> buckets_;
  Absences absences_;
  Queue<Event> queue_;
  Network network_;
  /// Draws the times after which members suspect a dead member.
  Random suspicion_random_;
  std::vector<Node> nodes_;
  /// By sender, receiver and class: the highest sequence number of a packet so far.
  std::map<std::tuple<MemberId, MemberId, core::TrafficClass>, std::uint64_t> sequence_sent_;

  /// The number of running workers at each step.
  std::map<Step, std::size_t> workers_at_;
  Step max_lag_ = 0;
  std::uint64_t updates_ = 0;
  /// If workers hand in early: by sample, when it was last in an update.
  std::vector<Time> visited_at_;
  Time longest_gap_{};
  /// Scratch memory of count_visits().
  std::vector<models::DealtSample> visits_;
  TrafficByKind traffic_{};
  std::vector<ProtocolPoint> curve_;
  bool is_over_ = false;
  std::string error_;
  core::MemberEffects effects_;
  core::EffectScratch scratch_;
};

template <class Call>
void Protocol::run_member(MemberId id, Call call) {
  Node& node = nodes_[id];
  effects_.clear();
  std::invoke(call, *node.core, core::MemberContext{now(), node.random, effects_, &scratch_});
  follow_step(id);
  for (core::MemberEffect& effect : effects_)
    std::visit([this, id](auto& e) { this->execute(id, e); }, effect);
}

}  // namespace starling::sim
