/// Keeps a list of all nodes of a cluster, and notices when they die or leave: SWIM (Das, Gupta,
/// Motivala, DSN 2002) with Lifeguard's refinements (Dadgar, Phillips, Currey, arXiv 1707.00788).
///
///     membership.start(context)            -> MembershipSend ..., SetTimer
///     membership.on(context, message)      -> MembershipSend ..., NodeChanged ...
///     membership.on_timer(context)         -> MembershipSend ..., NodeChanged ...
///     membership.leave(context)            -> MembershipSend ..., later HasLeft
///
/// A node that has two records of another one keeps that with the higher incarnation; if these are
/// equal, that with the later state:
///
///     alive --probe failed--> suspect --not refuted in time--> dead --dead_for--> forgotten
///       ^                       |                               |
///       +---- the node itself refutes, with a higher incarnation-+        leave() --> left
///
/// A name belongs to one live node. A node that asks to join with the name of another is admitted
/// once the other is dead, or at once if it has the other's address; it is refused as soon as the
/// other shows that it lives. If two nodes have one name already (they joined at the same time
/// through different seeds, or two clusters became one), the node with the lower id stays. A node
/// that knows both sends the other one NameTaken when it receives a message from the one that
/// stays.
///
/// Messages and work per second do not depend on the number of nodes, except for joins, healed
/// partitions and anti-entropy, which send the records that differ. docs/concepts/membership.md
/// states how soon changes are noticed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/membership/gossip_queue.hpp"
#include "starling/engine/core/membership/membership_message.hpp"
#include "starling/engine/core/membership/node_list.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

// --- effects ------------------------------------------------------------------------------------

/// Send this message to the node at this address. It may get lost.
struct MembershipSend {
  std::string address;
  MembershipMessage message;
};
/// Another node's state, address, name or number of workers has changed, or the node is new.
struct NodeChanged {
  NodeRecord record;
};
/// A seed node has answered: it sends the nodes that this node does not know yet.
struct HasJoined {};
/// The news that this node leaves was sent often enough: its process may end.
struct HasLeft {};
/// Another node has this one's name, and stays: this one has to leave.
struct NameRefused {
  NodeRecord holder;
};
/// This node has refused another one, because `holder` has its name.
struct NodeRefused {
  NodeRecord record;
  NodeRecord holder;
};

using MembershipEffect = std::variant<MembershipSend, SetTimer, NodeChanged, HasJoined, HasLeft,
                                      NameRefused, NodeRefused>;

struct MembershipContext {
  Time now;
  Random& random;
  std::vector<MembershipEffect>& out;
};

/// The defaults are for 3 to 500 nodes in one network, chosen by the measurements in
/// docs/concepts/membership.md.
struct MembershipOptions {
  /// The record of this node. Requires: it has an id other than 0, an address, and the default
  /// state and incarnation.
  NodeRecord self;
  /// The addresses of the seed nodes; this node's own is ignored. Empty for the first node of a
  /// cluster.
  std::vector<std::string> seeds = {};

  /// One node is probed in each interval. If it has not answered within the timeout,
  /// `probe_helpers` others are asked to probe it; if it has not answered at the interval's end, it
  /// is suspected. Interval and timeout are multiplied by 1 + health_score().
  Time probe_interval = std::chrono::milliseconds{200};
  Time probe_timeout = std::chrono::milliseconds{80};
  std::size_t probe_helpers = 3;
  /// A helper that has received no answer sends a nack after this time.
  Time nack_after = std::chrono::milliseconds{60};
  /// health_score() is at most this.
  unsigned health_score_max = 7;
  /// A timer that fires later than due by more than this shows that the process did not run. The
  /// node's clock leaves that time out.
  Time late = std::chrono::milliseconds{40};

  /// A suspect is declared dead after `suspicion_intervals` probe intervals, times max(1, log10 of
  /// the number of nodes), if `confirmations` other nodes suspect it too, or all that are not
  /// suspected themselves. If no other node suspects it, the time is `suspicion_max` times longer.
  double suspicion_intervals = 6;
  double suspicion_max = 6;
  std::size_t confirmations = 3;

  /// News goes to `gossip_to` random nodes in each interval, and with every probe.
  Time gossip_every = std::chrono::milliseconds{100};
  std::size_t gossip_to = 3;
  /// Each node sends a piece of news this many times, times log2 of the number of nodes.
  double gossip_repeats = 3;

  /// A message with its news is at most this many bytes by wire_size().
  std::size_t message_bytes = 4096;
  /// A message of Records is at most this many bytes.
  std::size_t records_bytes = 60'000;

  /// Anti-entropy: a node compares its records with those of a random node at intervals of
  /// `sync_interval` on average. After a join the interval starts at `sync_first` and doubles up to
  /// that.
  Time sync_first = std::chrono::milliseconds{500};
  Time sync_interval = std::chrono::seconds{10};
  /// A joining node asks the next seed node if one has not answered within this time.
  Time join_again = std::chrono::milliseconds{500};
  /// Each dead node is pinged once in this time on average, by any one of the live nodes.
  Time retry_every = std::chrono::milliseconds{500};
  /// A node that is dead or has left is forgotten after this time.
  Time dead_for = std::chrono::minutes{10};

  /// At most this many nodes are known, the dead included; a further one replaces a dead one or
  /// is ignored.
  std::size_t nodes_max = 200'000;
  /// A record with more workers, or with a name or address of more bytes, is ignored.
  std::uint32_t workers_max = 65'536;
  std::size_t text_max = 255;
};

/// One call at a time; not thread-safe. Messages may be lost, late, repeated, or nonsense.
class Membership {
 public:
  /// `salt` is any random number (see NodeList).
  Membership(MembershipOptions options, std::uint64_t salt);

  /// Call once, before all other events.
  void start(const MembershipContext& context);
  void on(const MembershipContext& context, const MembershipMessage& message);
  void on_timer(const MembershipContext& context);
  /// Begins to leave: sends the news of it to some nodes at once, and to others later. This node
  /// probes and suspects no node any more.
  void leave(const MembershipContext& context);
  /// This node offers `workers` workers from now on.
  void offer(const MembershipContext& context, std::uint32_t workers);

  [[nodiscard]] const NodeRecord& self() const noexcept { return self_; }
  /// The other nodes.
  [[nodiscard]] const NodeList& nodes() const noexcept { return nodes_; }
  /// Returns true once a seed node has answered; from the start if there are no seeds.
  [[nodiscard]] bool joined() const noexcept { return has_joined_; }
  /// Lifeguard's local health multiplier less one: 0 if this node has no doubts about its own
  /// health, higher the more it has.
  [[nodiscard]] unsigned health_score() const noexcept { return health_; }
  [[nodiscard]] const MembershipCounts& counts() const noexcept { return counts_; }

 private:
  /// The probe of the present interval.
  struct Probe {
    NodeId target;
    std::uint64_t sequence;
    Time started_at;
    std::vector<NodeId> helpers = {};
    std::size_t nacks = 0;
    bool is_indirect = false;

    [[nodiscard]] bool has_helper(NodeId id) const {
      return std::ranges::find(helpers, id) != helpers.end();
    }
  };
  /// A ping that this node has sent as the helper of `requester`, whose probe has number
  /// `sequence`.
  struct Relay {
    NodeId target;
    NodeId requester;
    std::uint64_t sequence;
    Time started_at;
  };
  /// The attempt of a node to join with the name of another.
  struct JoinAttempt {
    Time first_at;
    bool is_refused = false;
  };
  enum class Source { gossip, sync };
  static constexpr Time never = Time::max();
  /// At most this many relays are kept at a time; a further request is answered with a nack.
  static constexpr std::size_t relays_max = 1024;
  /// At most this many suspects are pinged without a probe in one interval.
  static constexpr std::size_t pinged_suspects_max = 3;
  /// At most this many join attempts are kept; a further one replaces the oldest.
  static constexpr std::size_t join_attempts_max = 64;
  /// A message received within this time after an event may have been sent before the event.
  static constexpr Time message_delay_max = std::chrono::milliseconds{250};
  /// Limits for one message; further updates and records are ignored.
  static constexpr std::size_t updates_max = 1024;
  static constexpr std::size_t records_max = 65'536;
  /// A record whose incarnation is higher than known by more than this is ignored: no node raises
  /// its own that far unnoticed.
  static constexpr std::uint64_t incarnation_jump_max = std::uint64_t{1} << 32U;

  /// Each event begins and ends with these two: they set the clock, then the timer.
  void begin_event(const MembershipContext& context);
  void end_event(const MembershipContext& context);
  [[nodiscard]] Time next_deadline() const;

  // Received messages.
  void receive(const MembershipContext& context, const NodeRecord& from, const Ping& ping);
  void receive(const MembershipContext& context, const NodeRecord& from, const PingAck& ack);
  void receive(const MembershipContext& context, const NodeRecord& from, const PingRequest& asked);
  void receive(const MembershipContext& context, const NodeRecord& from, const PingNack& nack);
  void receive(const MembershipContext& context, const NodeRecord& from, const Digest& digest);
  void receive(const MembershipContext& context, const NodeRecord& from, const Records& page);
  void receive(const MembershipContext& context, const NodeRecord& from, const NameTaken& taken);
  void receive(const MembershipContext&, const NodeRecord&, const Gossip&) {}

  // Nodes that have the same name (membership_names.cpp).
  /// Returns false if a message of `from` is to be ignored because another node has its name.
  [[nodiscard]] bool may_join(const MembershipContext& context, const NodeRecord& from);
  /// Declares a node dead that has the same name as `from`, or refuses `from`, by has_precedence().
  void resolve_name_conflict(const MembershipContext& context, const NodeRecord& from);
  void refuse(const MembershipContext& context, const NodeRecord& node, const NodeRecord& holder);
  void declare_dead(const MembershipContext& context, NodeId id);

  // Knowledge of other nodes (membership_view.cpp).
  [[nodiscard]] bool is_sane(const NodeRecord& record) const;
  /// Changes the records by one received record.
  void learn(const MembershipContext& context, const NodeUpdate& update, Source source);
  NodeEntry* add_node(const MembershipContext& context, const NodeRecord& record);
  void learn_of_self(const NodeRecord& record);
  void update_record(const MembershipContext& context, NodeEntry& entry, NodeRecord record,
                     NodeId by);
  void confirm_suspicion(NodeEntry& entry, NodeId by);
  void raise_incarnation(std::uint64_t above);
  void suspect(const MembershipContext& context, NodeId id);
  void expire_suspicions(const MembershipContext& context);
  /// Returns true if this node itself suspects the other one.
  [[nodiscard]] bool is_suspected_here(const NodeEntry& entry) const;
  [[nodiscard]] std::size_t possible_confirmers() const;
  [[nodiscard]] Time suspicion_time(const NodeEntry& entry) const;
  void set_deadline(NodeEntry& suspect);
  void forget(NodeId id);
  void forget_old();
  void queue_news(NodeId id);
  /// Makes this node doubt its own health more: raises health_score().
  void raise_health_score(unsigned by);

  // Sent messages. A function without a receiver as parameter does nothing before its time has
  // come.
  void send(const MembershipContext& context, const std::string& address, NodeId to,
            MembershipMessage::Body body);
  void attach_news(MembershipMessage& message, NodeId to);
  void send_gossip(const MembershipContext& context);
  void probe(const MembershipContext& context);
  void probe_indirectly(const MembershipContext& context);
  void end_probe(const MembershipContext& context);
  void send_nacks(const MembershipContext& context);
  void sync(const MembershipContext& context);
  void sync_with(const MembershipContext& context, const NodeRecord& node);
  [[nodiscard]] std::size_t bucket_count() const;
  [[nodiscard]] std::vector<std::uint64_t> own_digest() const;
  void send_records(const MembershipContext& context, const NodeRecord& to,
                    const std::vector<std::uint64_t>& theirs);
  void ask_next_seed(const MembershipContext& context);
  void join(const MembershipContext& context);
  void ping(const MembershipContext& context, const NodeEntry& entry);
  void ping_dead(const MembershipContext& context);

  MembershipOptions options_;
  NodeRecord self_;
  NodeList nodes_;
  GossipQueue news_;
  bool has_joined_ = false;
  unsigned health_ = 0;
  MembershipCounts counts_;

  // All times but timer_due_at_ are on the node's own clock: the driver's clock less stopped_time_,
  // the time in which the process did not run.
  Time now_{};
  Time stopped_time_{};
  /// When the driver was to call on_timer, on the driver's clock.
  Time timer_due_at_ = never;
  Timer timer_;

  std::optional<Probe> probe_;
  /// The number of the last probe or relay of this node.
  std::uint64_t sequence_ = 0;
  Time probe_at_ = never;
  std::map<std::uint64_t, Relay> relays_;
  /// The relays that have sent neither an ack nor a nack yet, in the order of their starts.
  std::deque<std::uint64_t> relays_to_nack_;
  /// The suspects by their deadlines, and the dead and left nodes by the time of that change.
  std::set<std::pair<Time, NodeId>> suspicions_;
  std::set<std::pair<Time, NodeId>> dead_by_time_;

  Time gossip_at_{};
  Time sync_at_ = never;
  Time sync_interval_{};
  /// sync_with() sends nothing before this time.
  Time next_sync_with_at_{};
  Time join_at_ = never;
  /// The position in options_.seeds of the seed node that was asked last.
  std::size_t seed_ = 0;
  Time retry_at_ = never;
  std::map<NodeId, JoinAttempt> join_attempts_;
};

}  // namespace starling::core
