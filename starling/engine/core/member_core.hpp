/// One process of a replicated job as a core: its worker, the ranges that it owns, the coordinator
/// where it is here, its part of the council, and a channel to every other member.
///
/// A node is one incarnation of one member. Whoever learns that the job goes on without it is done
/// for (Excluded); a new incarnation may join.
///
///     start -> [joining] -> member --declared dead, or has left--> excluded
///                             \------the job cannot go on--------> failed
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "starling/engine/core/coordinator.hpp"
#include "starling/engine/core/mode.hpp"
#include "starling/engine/core/peer_message.hpp"
#include "starling/engine/core/worker.hpp"

namespace starling::core {

/// Which timer of a node: hand it back to on_timer.
using TimerKey = std::uint64_t;

/// Call on_timer with this key at this time or soon after.
struct MemberTimer {
  Time at;
  TimerKey key;
};
/// Send this over the network. It may get lost.
struct Dispatch {
  Envelope envelope;
};
/// The job goes on without this incarnation.
struct Excluded {};

using MemberEffect = std::variant<Dispatch, MemberTimer, Plan, Compute, Done, Fail, Excluded>;
using MemberEffects = std::vector<MemberEffect>;

struct MemberContext {
  Time now;
  Random& random;
  MemberEffects& out;
};

template <class T>
struct MemberOptions {
  Member self;
  Mode mode = Mode::peer;
  /// As a worker's, where this member works: its barrier, its last step, whether it plans. Id,
  /// incarnation, rounds and whom it deals with are the node's to say.
  WorkerOptions worker;
  /// Members are numbered below this, and whoever is not is never taken in: every owner keeps count
  /// of each of them in each of its ranges. The same for all members.
  MemberId members_max = 1024;
  /// As a shard's, for ranges that this member comes to own, but for the ranges and how many may
  /// push.
  ShardOptions<T> shard;
  std::shared_ptr<const std::vector<RangeState>> start;
  /// Epoch 1, for the members that it names; absent for those that join.
  ConfigurationPtr first;
  /// The members that a joining member asks to be taken in.
  std::vector<MemberId> seeds;
  /// But for who this member is.
  CouncilOptions council;
  ChannelOptions channel;
  /// A request to join or to leave is repeated after this time.
  Time ask_again = std::chrono::milliseconds{200};
  /// A random other member is greeted after this time.
  Time probe_every = std::chrono::milliseconds{500};
};

/// One at a time; not thread-safe.
template <class T>
class MemberCore {
 public:
  explicit MemberCore(MemberOptions<T> options);

  void start(const MemberContext& context);
  void on_packet(const MemberContext& context, const Envelope& envelope);
  void on_timer(const MemberContext& context, TimerKey key);
  /// The answers to Plan and Compute; see Worker.
  void on_plan(const MemberContext& context, Step step, std::vector<RangeRows> wanted);
  void on_update(const MemberContext& context, Step step, Update update);
  void on_failure(const MemberContext& context, Step step, const std::string& why);

  /// Failure detection has heard nothing of this incarnation of a member for long, or hears it
  /// again. What it must guarantee: docs/design/0006-range-ownership.md. Verdicts on another
  /// incarnation than the configuration names do not count.
  void suspect(const MemberContext& context, MemberId id, Incarnation incarnation);
  void trust(const MemberContext& context, MemberId id, Incarnation incarnation);
  /// Ends the worker's part at the end of its step; its ranges stay, and are served.
  void stop(const MemberContext& context);
  /// Ends the worker's part at the end of its step, hands over its ranges, and goes.
  void leave(const MemberContext& context);

  /// What a channel has delivered; for tests that need no network. Dropped, with the configuration
  /// for an answer, where the sender is no member.
  void on_message(const MemberContext& context, MemberId from, Incarnation incarnation,
                  const PeerMessagePtr& peer_message);

  enum class State { idle, joining, member, excluded, failed };
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const Member& self() const noexcept { return options_.self; }
  [[nodiscard]] const MemberOptions<T>& options() const noexcept { return options_; }
  /// nullptr before the first.
  [[nodiscard]] const ConfigurationPtr& configuration() const noexcept { return configuration_; }
  [[nodiscard]] bool suspects(MemberId id) const { return council_.suspects(id); }
  /// nullptr where this member has none.
  [[nodiscard]] const Worker* worker() const noexcept { return worker_ ? &*worker_ : nullptr; }
  [[nodiscard]] const Coordinator* coordinator() const noexcept {
    return coordinator_ ? &*coordinator_ : nullptr;
  }
  /// The ranges that it owns, if any.
  [[nodiscard]] Replica<T>& replica() noexcept { return *replica_; }
  [[nodiscard]] const Replica<T>& replica() const noexcept { return *replica_; }

 private:
  struct Link {
    /// By traffic class: control, data.
    std::array<Channel<PeerMessagePtr>, 2> channels;
    /// The other side knows a configuration of this epoch, or is sent it before all that follows.
    Epoch epoch_sent = 0;
    /// Below, the other's id; above, which link of this node it is: that to a former incarnation
    /// had another. The bit between says which channel a timer is for.
    TimerKey timer = 0;

    [[nodiscard]] Channel<PeerMessagePtr>& channel(TrafficClass traffic_class) {
      return channels[static_cast<std::size_t>(traffic_class)];
    }
    void on(const ChannelContext<PeerMessagePtr>& context, const Envelope& envelope, Epoch known);
    [[nodiscard]] TimerKey timer_of(TrafficClass traffic_class) const {
      return timer | (traffic_class == TrafficClass::data ? data_bit : 0);
    }
    [[nodiscard]] bool has_timer(TimerKey key) const { return (key & ~data_bit) == timer; }
    static constexpr TimerKey data_bit = TimerKey{1} << 31U;
    static TrafficClass traffic_class_of(TimerKey key) {
      return (key & data_bit) != 0 ? TrafficClass::data : TrafficClass::control;
    }
    static MemberId other_of(TimerKey key) { return static_cast<MemberId>(key & ~data_bit); }
  };
  using LinkEffects = ChannelEffects<PeerMessagePtr>;

  static constexpr TimerKey worker_key = 0;
  static constexpr TimerKey coordinator_key = 1;
  static constexpr TimerKey council_key = 2;
  static constexpr TimerKey own_key = 3;
  static constexpr TimerKey probe_key = 4;

  [[nodiscard]] Link* link(MemberId id) const;
  void act_on(const MemberContext& context, MemberId id, TrafficClass traffic_class,
              LinkEffects effects);
  void send(const MemberContext& context, MemberId to, PeerMessagePtr peer_message);
  void post(const MemberContext& context, MemberId to, PeerMessagePtr peer_message);
  void post_to_council(const MemberContext& context, const PeerMessagePtr& peer_message);
  void send_configuration(const MemberContext& context, MemberId id);
  void send_unreliable(const MemberContext& context, MemberId to,
                       std::optional<Incarnation> incarnation, PeerMessagePtr peer_message) const;

  void deliver(const MemberContext& context, MemberId from, const PeerMessagePtr& peer_message);
  void receive_unreliable(const MemberContext& context, const Envelope& envelope);
  void receive_join_request(const MemberContext& context, const Envelope& envelope,
                            const Member& member);
  [[nodiscard]] bool is_news(const ConfigurationPtr& next) const;
  /// Ends an event: what this member said to itself, and what has changed for its council.
  void settle(const MemberContext& context);

  void adopt(const MemberContext& context, const ConfigurationPtr& next);
  void renew_links(const Configuration& next);
  void inform_worker(const MemberContext& context, const Configuration* former);
  void inform_coordinator(const MemberContext& context, const Configuration* former);
  void send_status(const MemberContext& context, const Configuration* former);
  void announce(const MemberContext& context, const ConfigurationPtr& former);
  void ask_again(const MemberContext& context);
  void probe_epoch(const MemberContext& context);
  void fail(const MemberContext& context, std::string why);

  template <class Event>
  void run_worker(const MemberContext& context, Event event);
  template <class Event>
  void run_coordinator(const MemberContext& context, Event event);
  template <class Event>
  bool run_replica(const MemberContext& context, Event event);
  template <class Event>
  void run_council(const MemberContext& context, Event event);
  void execute(const MemberContext& context, Effects effects, TimerKey key);

  void take(const MemberContext& context, MemberId from, const PeerMessagePtr& peer_message,
            const CouncilMessage& message);
  template <class M>
  void take(const MemberContext& context, MemberId from, const PeerMessagePtr& peer_message,
            const M& message);

  MemberOptions<T> options_;
  State state_ = State::idle;
  ConfigurationPtr configuration_;
  std::vector<std::unique_ptr<Link>> links_;
  TimerKey links_made_ = 0;
  std::optional<Worker> worker_;
  /// Set by the constructor.
  std::optional<Replica<T>> replica_;
  std::optional<Coordinator> coordinator_;
  Council council_;
  std::uint64_t reported_changes_ = 0;
  bool leaving_ = false;
  Time joining_since_{};
  /// What this member says to itself, in order.
  std::vector<PeerMessagePtr> inbox_;
  Timer timer_;
};

/// Receives a packet at a node that knows configurations up to `known`. Configurations are sent as
/// control traffic: a tensor that belongs to a later one is dropped here, and sent again.
template <class T>
void MemberCore<T>::Link::on(const ChannelContext<PeerMessagePtr>& context,
                             const Envelope& envelope, Epoch known) {
  if (envelope.traffic_class == TrafficClass::data && envelope.epoch > known)
    channel(TrafficClass::data).on_acknowledgement(context, envelope.packet);
  else
    channel(envelope.traffic_class).on(context, envelope.packet);
}

extern template class MemberCore<float>;
extern template class MemberCore<double>;

}  // namespace starling::core
