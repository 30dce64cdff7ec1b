/// Keeps a list of all nodes of a cluster, and notices when they die or leave: SWIM (Das, Gupta,
/// Motivala, DSN 2002) with Lifeguard's refinements (Dadgar, Phillips, Currey, arXiv 1707.00788).
///
///     membership.start(context)            -> MembershipSend ..., SetTimer
///     membership.on(context, message)      -> MembershipSend ..., NodeChanged ...
///     membership.on_timer(context)         -> MembershipSend ..., NodeChanged ...
///     membership.leave(context)            -> MembershipSend ..., later HasLeft
///
/// A node that receives a record of a node that it knows keeps the record with the higher
/// incarnation. If the incarnations are equal, it keeps the one with the later state:
///
///     alive --probe failed--> suspect --not refuted in time--> dead --forget_dead_after-->
///     forgotten
///       ^                       |                               |
///       +---- the node itself refutes, with a higher incarnation-+        leave() --> left
///
/// A name belongs to one live node, its holder. A node that asks to join with that name is admitted
/// once the holder is dead, or at once if it has the holder's address. It is refused as soon as the
/// holder shows that it lives. If two nodes have joined with the same name (at the same time
/// through different seeds, or in two clusters that became one), the node with the lower id stays.
/// A node that knows both, and receives a message from the one that stays, sends NameTaken to the
/// other.
///
/// The messages and the work of a node per second do not depend on the number of nodes, except for
/// joins, healed partitions and anti-entropy, which send the records that differ.
/// docs/concepts/membership.md states how soon changes are noticed.
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
/// A seed node has answered, and sends the records of the nodes that this node does not know yet.
struct HasJoined {};
/// This node has sent the news that it leaves as often as `gossip_repeats` asks: its process may
/// end.
struct HasLeft {};
/// This node must leave, because `holder` has the same name and stays.
struct MustLeave {
  NodeRecord holder;
};
/// This node has refused the node of `record`, because `holder` has the same name.
struct NodeRefused {
  NodeRecord record;
  NodeRecord holder;
};

using MembershipEffect =
    std::variant<MembershipSend, SetTimer, NodeChanged, HasJoined, HasLeft, MustLeave, NodeRefused>;

/// Passed to every event: the time on the driver's clock, a random generator, and the list to which
/// Membership appends its effects.
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

  /// A node probes one other node in each interval. If the target has not answered within the
  /// timeout, the node asks `probe_helpers` others to ping it too. If no answer has come by the end
  /// of the interval, the node suspects the target. Interval and timeout are multiplied by
  /// 1 + health_score().
  Time probe_interval = std::chrono::milliseconds{200};
  Time probe_timeout = std::chrono::milliseconds{80};
  std::size_t probe_helpers = 3;
  /// A helper that has received no answer from the target for this time sends a PingNack.
  Time nack_after = std::chrono::milliseconds{60};
  /// health_score() is at most this.
  unsigned health_score_max = 7;
  /// If a timer fires more than this after it was due, the process did not run in between: the
  /// node's clock does not count that time.
  Time late = std::chrono::milliseconds{40};

  /// If `confirmations` other nodes suspect a suspect too (or all others that are not suspected
  /// themselves, if these are fewer), this node declares the suspect dead after
  /// `suspicion_intervals` probe intervals times max(1, log10 of the number of nodes). If no other
  /// node suspects it, this takes `suspicion_max` times as long.
  double suspicion_intervals = 6;
  double suspicion_max = 6;
  std::size_t confirmations = 3;

  /// A node sends news to `gossip_to` random nodes every `gossip_every`, and attaches news to all
  /// other messages except Records.
  Time gossip_every = std::chrono::milliseconds{100};
  std::size_t gossip_to = 3;
  /// Each node sends a piece of news this many times, times log2 of the number of nodes.
  double gossip_repeats = 3;

  /// News is attached only as long as the message is at most this many bytes by wire_size().
  std::size_t message_bytes = 4096;
  /// A message of Records is at most this many bytes.
  std::size_t records_bytes = 60'000;

  /// Anti-entropy: a node compares its records with those of a random node every `sync_interval` on
  /// average. After a join, the interval is `sync_first` at first, and doubles at each comparison
  /// until it is `sync_interval`.
  Time sync_first = std::chrono::milliseconds{500};
  Time sync_interval = std::chrono::seconds{10};
  /// If a seed node has not answered within this time, the joining node asks the next one.
  Time join_retry = std::chrono::milliseconds{500};
  /// On average one of the live nodes pings each dead node once in this time.
  Time ping_dead_every = std::chrono::milliseconds{500};
  /// A node that is dead or has left is forgotten after this time.
  Time forget_dead_after = std::chrono::minutes{10};

  /// A node keeps at most this many records, including those of dead nodes. A further node replaces
  /// the one that died or left first; if there is none, it is ignored.
  std::size_t nodes_max = 200'000;
  /// A record with more workers, or with a name or address of more bytes, is ignored.
  std::uint32_t workers_max = 65'536;
  std::size_t text_max = 255;
};

/// One call at a time; not thread-safe. Messages may be lost, late, repeated, or forged.
class Membership {
 public:
  /// `salt` is any random number (see NodeList).
  Membership(MembershipOptions options, std::uint64_t salt);

  /// Call once, before all other events.
  void start(const MembershipContext& context);
  void on(const MembershipContext& context, const MembershipMessage& message);
  void on_timer(const MembershipContext& context);
  /// Begins to leave: sends this news to some nodes at once, and to more nodes later. From now on
  /// this node neither probes nor suspects other nodes.
  void leave(const MembershipContext& context);
  /// Replaces the addresses of the seed nodes. This node's own is ignored; without another one,
  /// nothing changes.
  void set_seeds(std::vector<std::string> seeds) {
    std::erase(seeds, self_.address);
    if (!seeds.empty()) options_.seeds = std::move(seeds);
  }
  /// This node offers `workers` workers from now on.
  void offer(const MembershipContext& context, std::uint32_t workers);

  [[nodiscard]] const NodeRecord& self() const noexcept { return self_; }
  /// The other nodes.
  [[nodiscard]] const NodeList& nodes() const noexcept { return nodes_; }
  /// The addresses of the seed nodes, without this node's own.
  [[nodiscard]] const std::vector<std::string>& seeds() const noexcept { return options_.seeds; }
  /// Returns true once a seed node has answered, or from the start if there are no seeds.
  [[nodiscard]] bool joined() const noexcept { return has_joined_; }
  /// Lifeguard's local health multiplier less one. It is 0 if this node has no sign that it is slow
  /// or partitioned itself, and rises with each such sign.
  [[nodiscard]] unsigned health_score() const noexcept { return health_score_; }
  [[nodiscard]] const MembershipCounts& counts() const noexcept { return counts_; }
  /// True if this node receives nothing from node `id`, but other nodes do: only helpers have
  /// answered this node's last probes of it. Node `id` is alive, so gossip does not report this.
  [[nodiscard]] bool is_silent(NodeId id) const {
    const NodeEntry* entry = nodes_.find(id);
    return entry != nullptr && entry->relayed_probes >= relayed_probes_max;
  }

 private:
  /// The probe of the current interval.
  struct Probe {
    NodeId target;
    std::uint64_t sequence;
    Time started_at;
    std::vector<NodeId> helpers = {};
    /// The number of PingNacks that helpers have sent.
    std::size_t nacks = 0;
    /// True once this node has asked helpers.
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
  /// The attempt of a node to join with the name of another node.
  struct JoinAttempt {
    Time first_at;
    bool is_refused = false;
  };
  /// How a record arrived: as news, or by anti-entropy.
  enum class Source { gossip, sync };
  static constexpr Time never = Time::max();
  /// At most this many relays are kept at a time; a further request is answered with a nack.
  static constexpr std::size_t relays_max = 1024;
  /// In each probe interval at most this many suspects are pinged before a node is probed.
  static constexpr std::size_t pinged_suspects_max = 3;
  /// A node is silent after this many probes in a row that only helpers have answered.
  static constexpr unsigned relayed_probes_max = 3;
  /// At most this many join attempts are kept; a further one replaces the oldest.
  static constexpr std::size_t join_attempts_max = 64;
  /// A message received within this time after an event may have been sent before the event.
  static constexpr Time message_delay_max = std::chrono::milliseconds{250};
  /// Limits for one message; further updates and records are ignored.
  static constexpr std::size_t updates_max = 1024;
  static constexpr std::size_t records_max = 65'536;
  /// A record is ignored if its incarnation is more than this above the known one: no node raises
  /// its own that far without others noticing.
  static constexpr std::uint64_t incarnation_jump_max = std::uint64_t{1} << 32U;

  /// Every event calls begin_event() first, which sets the node's clock, and end_event() last,
  /// which sets the timer.
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
  /// Returns false if a message of `from` must be ignored, because another node has the name with
  /// which `from` wants to join.
  [[nodiscard]] bool may_join(const MembershipContext& context, const NodeRecord& from);
  /// Handles a message of `from` if another node has the same name. Refuses `from` if the other
  /// node is this one and has_precedence(). Declares another node dead if it is a former process at
  /// the same address; refuses it if `from` has_precedence(); else pings it, so that it answers.
  void resolve_name_conflict(const MembershipContext& context, const NodeRecord& from);
  void refuse(const MembershipContext& context, const NodeRecord& node, const NodeRecord& holder);
  void declare_dead(const MembershipContext& context, NodeId id);

  // Knowledge of other nodes (membership_view.cpp).
  /// Returns false if a field of the record has a value that no correct node sends.
  [[nodiscard]] bool is_valid(const NodeRecord& record) const;
  /// Updates this node's records with one received record.
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
  [[nodiscard]] bool is_suspected_by_self(const NodeEntry& entry) const;
  [[nodiscard]] std::size_t possible_confirmers() const;
  [[nodiscard]] Time suspicion_time(const NodeEntry& entry) const;
  void set_deadline(NodeEntry& suspect);
  void forget(NodeId id);
  void forget_old();
  void queue_news(NodeId id);
  /// Raises health_score(): there is a sign that this node itself is slow or partitioned.
  void raise_health_score(unsigned by);

  // Sent messages. on_timer() calls each function that has no receiver among its parameters; the
  // function returns at once if it is not due yet.
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
  unsigned health_score_ = 0;
  MembershipCounts counts_;

  // All times but timer_due_at_ are on the node's own clock. It is the driver's clock less
  // stopped_time_, the total time in which the process did not run.
  Time now_{};
  Time stopped_time_{};
  /// When the driver was to call on_timer, on the driver's clock.
  Time timer_due_at_ = never;
  Timer timer_;

  std::optional<Probe> probe_;
  /// The sequence number of this node's last probe or relay.
  std::uint64_t sequence_ = 0;
  Time probe_at_ = never;
  /// By sequence number.
  std::map<std::uint64_t, Relay> relays_;
  /// By sequence number, in the order of their starts: the relays that have sent neither a PingAck
  /// nor a PingNack yet.
  std::deque<std::uint64_t> relays_to_nack_;
  /// The suspects by their deadlines; the dead and left nodes by the time at which they died or
  /// left.
  std::set<std::pair<Time, NodeId>> suspicions_;
  std::set<std::pair<Time, NodeId>> dead_by_time_;

  Time gossip_at_{};
  Time sync_at_ = never;
  Time sync_interval_{};
  /// sync_with() sends nothing before this time.
  Time next_sync_with_at_{};
  Time join_at_ = never;
  /// The position in options_.seeds of the seed node that was asked last.
  std::size_t seed_position_ = 0;
  Time ping_dead_at_ = never;
  std::map<NodeId, JoinAttempt> join_attempts_;
};

}  // namespace starling::core
