/// Finds the nodes of a cluster and notices when they go: SWIM (Das, Gupta, Motivala, DSN 2002)
/// with Lifeguard's refinements (Dadgar, Phillips, Currey, arXiv 1707.00788), full membership.
///
///     membership.start(context)            -> MembershipSend ..., SetTimer
///     membership.on(context, message)      -> MembershipSend ..., MemberChanged ...
///     membership.on_timer(context)         -> MembershipSend ..., MemberChanged ...
///     membership.leave(context)            -> MembershipSend ..., later HasLeft
///
/// Others know a member by (incarnation, state); the later pair wins:
///
///     alive --probe failed--> suspect --nobody refuted in time--> dead --some minutes--> forgotten
///       ^                       |                                  |
///       +---- the member itself says so, with a higher incarnation-+        leave() --> left
///
/// A name belongs to one live member. A node that asks to join under the name of another is
/// admitted once the other is dead, at once where it comes from the other's address, and is refused
/// as soon as the other shows that it lives. Where two members have one name already (they joined
/// at the same time through different seeds, or two clusters became one), the one with the lower id
/// stays, and a member that receives from it and knows the other one sends that one NameTaken.
///
/// Messages and work per second do not depend on the number of members, except for joins, healed
/// partitions and anti-entropy, which send the records that differ. docs/concepts/membership.md
/// says how soon changes are noticed.
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
/// Another member's state or facts have changed, or it is new.
struct MemberChanged {
  NodeRecord record;
};
/// A seed node has answered: the members that it knows follow, or are known already.
struct HasJoined {};
/// The news that this member leaves was sent often enough: it may go.
struct HasLeft {};
/// Another member has this one's name, and stays: this one has to go.
struct NameRefused {
  NodeRecord holder;
};
/// This member has refused another one, because `holder` has its name.
struct MemberRefused {
  NodeRecord record;
  NodeRecord holder;
};

using MembershipEffect = std::variant<MembershipSend, SetTimer, MemberChanged, HasJoined, HasLeft,
                                      NameRefused, MemberRefused>;

struct MembershipContext {
  Time now;
  Random& random;
  std::vector<MembershipEffect>& out;
};

/// The defaults are for 3 to 500 nodes in one network, chosen by the measurements in
/// docs/concepts/membership.md.
struct MembershipOptions {
  /// This member. Requires: an id other than 0, an address; state and incarnation as they are.
  NodeRecord self;
  /// Addresses of members to join through; this member's own is ignored. Empty for the first
  /// member.
  std::vector<std::string> seeds = {};

  /// One member is probed in each interval. If it has not answered within the timeout, others are
  /// asked to probe it; if it has not answered at the interval's end, it is suspected. Interval and
  /// timeout are multiplied by 1 + health().
  Time probe_every = std::chrono::milliseconds{200};
  Time probe_timeout = std::chrono::milliseconds{80};
  std::size_t probe_helpers = 3;
  /// A helper that has no answer sends a nack after this time.
  Time nack_after = std::chrono::milliseconds{60};
  /// health() is at most this.
  unsigned health_max = 7;
  /// A timer that fires this much late shows that this member did not run: that time is not
  /// counted.
  Time late = std::chrono::milliseconds{40};

  /// A suspect is declared dead after this many probe intervals, times log10 of the members where
  /// that is more than 1, where `confirmations` other members, or all that are not suspected
  /// themselves, suspect it too; where no other does, after `suspicion_max` times that.
  double suspicion_intervals = 6;
  double suspicion_max = 6;
  std::size_t confirmations = 3;

  /// News goes to `gossip_to` random members in each interval, and with every probe.
  Time gossip_every = std::chrono::milliseconds{100};
  std::size_t gossip_to = 3;
  /// Each member sends a piece of news this many times, times log2 of the members.
  double gossip_repeats = 3;

  /// A message, with the news that rides along, is at most this many bytes by wire_size().
  std::size_t message_bytes = 4096;
  /// A message of Records is at most this many bytes.
  std::size_t records_bytes = 60'000;

  /// Records are compared with those of a random member at this interval, which starts at
  /// `sync_first` after a join and doubles.
  Time sync_first = std::chrono::milliseconds{500};
  Time sync_every = std::chrono::seconds{10};
  /// The next seed node is asked where one has not answered within this time.
  Time join_again = std::chrono::milliseconds{500};
  /// Each dead member is pinged once in this time on average, by any one of the others.
  Time retry_every = std::chrono::milliseconds{500};
  /// A member that is dead or has left is forgotten after this time.
  Time dead_for = std::chrono::minutes{10};

  /// At most this many members are known, the dead included; a further one replaces a dead one or
  /// is ignored.
  std::size_t members_max = 200'000;
  /// A record with more workers, or with a string of more bytes, is ignored.
  std::uint32_t workers_max = 65'536;
  std::size_t text_max = 255;
};

/// One call at a time; not thread-safe. Messages may be lost, late, repeated, or nonsense.
class Membership {
 public:
  /// `salt`: any random number.
  Membership(MembershipOptions options, std::uint64_t salt);

  /// Call first, once.
  void start(const MembershipContext& context);
  void on(const MembershipContext& context, const MembershipMessage& message);
  void on_timer(const MembershipContext& context);
  /// Sends the news that this member leaves, to some members at once. It probes and suspects no
  /// member any more.
  void leave(const MembershipContext& context);
  /// This member offers `workers` workers from now on.
  void offer(const MembershipContext& context, std::uint32_t workers);

  [[nodiscard]] const NodeRecord& self() const noexcept { return self_; }
  /// The other members.
  [[nodiscard]] const NodeList& members() const noexcept { return members_; }
  /// True from the start where there are no seeds.
  [[nodiscard]] bool joined() const noexcept { return joined_; }
  /// Lifeguard's local health multiplier less one: 0 when this member has no doubts about itself.
  [[nodiscard]] unsigned health() const noexcept { return health_; }
  [[nodiscard]] const MembershipCounts& counts() const noexcept { return counts_; }

 private:
  struct Probe {
    NodeId target;
    std::uint64_t sequence;
    Time started;
    std::vector<NodeId> helpers = {};
    std::size_t nacks = 0;
    bool indirect = false;

    [[nodiscard]] bool asked(NodeId id) const {
      return std::ranges::find(helpers, id) != helpers.end();
    }
  };
  struct Relay {
    NodeId target;
    NodeId requester;
    std::uint64_t sequence;
    Time since;
  };
  /// A node that asks to join under another's name.
  struct JoinAttempt {
    Time since;
    bool is_refused = false;
  };
  enum class Source { gossip, sync };
  static constexpr Time never = Time::max();
  /// At most this many members are probed for others at a time; a further request gets a nack.
  static constexpr std::size_t relays_max = 1024;
  /// At most this many suspects are pinged rather than probed in one interval.
  static constexpr std::size_t told_max = 3;
  /// At most this many join attempts are kept; beyond that, the first one is forgotten.
  static constexpr std::size_t join_attempts_max = 64;
  /// A message may come this much later than it was sent.
  static constexpr Time name_doubt = std::chrono::milliseconds{250};
  /// Limits for one message; further updates and records are ignored.
  static constexpr std::size_t updates_max = 1024;
  static constexpr std::size_t records_max = 65'536;
  /// A larger jump of an incarnation is ignored: no member raises its own so far unnoticed.
  static constexpr std::uint64_t incarnation_jump_max = std::uint64_t{1} << 32U;

  void begin(const MembershipContext& context);
  void finish(const MembershipContext& context);
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

  // Members that have the same name (membership_names.cpp).
  /// Returns false where a message of `from` is ignored, because another member has its name.
  [[nodiscard]] bool may_join(const MembershipContext& context, const NodeRecord& from);
  /// Decides on the name of `from`, which is a live member.
  void settle_name(const MembershipContext& context, const NodeRecord& from);
  void refuse(const MembershipContext& context, const NodeRecord& member, const NodeRecord& holder);
  void bury(const MembershipContext& context, NodeId id);

  // Knowledge of other members (membership_view.cpp).
  [[nodiscard]] bool is_sane(const NodeRecord& record) const;
  void learn(const MembershipContext& context, const NodeUpdate& update, Source source);
  MemberEntry* admit(const MembershipContext& context, const NodeRecord& record);
  void learn_of_self(const NodeRecord& record);
  void adopt(const MembershipContext& context, MemberEntry& entry, NodeRecord record, NodeId by);
  void confirm(MemberEntry& entry, NodeId by);
  void renew(std::uint64_t above);
  void suspect(const MembershipContext& context, NodeId id);
  void judge(const MembershipContext& context);
  /// True where this member itself suspects the other one.
  [[nodiscard]] bool accused(const MemberEntry& entry) const;
  [[nodiscard]] std::size_t confirmers() const;
  [[nodiscard]] Time patience(const MemberEntry& entry) const;
  void set_deadline(MemberEntry& suspect);
  void forget(NodeId id);
  void forget_old();
  void spread(NodeId id);
  void ail(unsigned by);

  // Sent messages.
  void send(const MembershipContext& context, const std::string& address, NodeId to,
            MembershipMessage::Body body);
  void ride(MembershipMessage& message, NodeId to);
  void gossip(const MembershipContext& context);
  void probe(const MembershipContext& context);
  void probe_indirectly(const MembershipContext& context);
  void end_probe(const MembershipContext& context);
  void send_nacks(const MembershipContext& context);
  void sync(const MembershipContext& context);
  void sync_with(const MembershipContext& context, const NodeRecord& member);
  [[nodiscard]] std::size_t buckets() const;
  [[nodiscard]] std::vector<std::uint64_t> summary() const;
  void send_records(const MembershipContext& context, const NodeRecord& to,
                    const std::vector<std::uint64_t>& theirs);
  void ask_next_seed(const MembershipContext& context);
  void join(const MembershipContext& context);
  void ping(const MembershipContext& context, const MemberEntry& entry);
  void retry(const MembershipContext& context);

  MembershipOptions options_;
  NodeRecord self_;
  NodeList members_;
  GossipQueue news_;
  bool joined_ = false;
  unsigned health_ = 0;
  MembershipCounts counts_;

  // All times but due_ are on the member's own clock, which stands still while it does not run.
  Time now_{};
  Time slept_{};
  /// When the driver was to call on_timer, on the driver's clock.
  Time due_ = never;
  Timer timer_;

  std::optional<Probe> probe_;
  std::uint64_t sequence_ = 0;
  Time probe_at_ = never;
  std::map<std::uint64_t, Relay> relays_;
  /// Relays that still have to send an ack or a nack, in the order of their times.
  std::deque<std::uint64_t> nacks_;
  /// Suspicions in the order of their deadlines; members that died or left, in the order of those
  /// times.
  std::set<std::pair<Time, NodeId>> suspicions_;
  std::set<std::pair<Time, NodeId>> graves_;

  Time gossip_at_{};
  Time sync_at_ = never;
  Time sync_wait_{};
  /// No comparison of records begins before this time.
  Time sync_free_at_{};
  Time join_at_ = never;
  std::size_t seed_ = 0;
  Time retry_at_ = never;
  std::map<NodeId, JoinAttempt> join_attempts_;
};

}  // namespace starling::core
