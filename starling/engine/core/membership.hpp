/// Finds the nodes of a cluster and notices when they go: SWIM (Das, Gupta, Motivala, DSN 2002)
/// with Lifeguard's refinements (Dadgar, Phillips, Currey, arXiv 1707.00788), full membership.
///
///     membership.start(context)            -> MembershipSend ..., SetTimer
///     membership.on(context, message)      -> MembershipSend ..., MemberChanged ...
///     membership.on_timer(context)         -> MembershipSend ..., MemberChanged ...
///     membership.leave(context)            -> MembershipSend ..., later HasLeft
///
/// What others know of a member, by (incarnation, state); the later wins:
///
///     alive --probe failed--> suspect --nobody refuted in time--> dead --some minutes--> forgotten
///       ^                       |                                  |
///       +---- the member itself says so, with a higher incarnation-+        leave() --> left
///
/// A name is one live member's. Who knocks under the name of another is let in once that one is
/// dead, at once where it comes from that one's address, and is refused as soon as that one says
/// that it lives. Of two that are members already (they joined at the same time through different
/// seeds, or two clusters became one) the one with the lower id stays, and the other is told to go
/// by whoever hears the first and knows the second.
///
/// What it costs: messages and work a second do not depend on the number of members, but for joins,
/// healed cuts and anti-entropy, which send what differs. docs/concepts/membership.md says what is
/// noticed when.
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

#include "starling/engine/core/gossip_queue.hpp"
#include "starling/engine/core/membership_message.hpp"
#include "starling/engine/core/node_list.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

// --- effects ------------------------------------------------------------------------------------

/// Send this to whoever is at this address. It may get lost.
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
/// That this member leaves has been told often enough: it may go.
struct HasLeft {};
/// Another member has this one's name, and stays: this one has to go.
struct NameRefused {
  NodeRecord holder;
};
/// Another member was told so.
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
  /// Addresses of members to join through; one's own is passed over. Empty for the first.
  std::vector<std::string> seeds = {};

  /// One member is probed in each interval: has it not answered within the timeout, others are
  /// asked to probe it; has it not answered at the interval's end, it is suspected. Both are
  /// multiplied by 1 + health().
  Time probe_every = std::chrono::milliseconds{200};
  Time probe_timeout = std::chrono::milliseconds{80};
  std::size_t probe_helpers = 3;
  /// Whoever helps and has no answer says so after this time.
  Time nack_after = std::chrono::milliseconds{60};
  /// health() is at most this.
  unsigned health_max = 7;
  /// A timer that comes this much late shows that this member did not run: the time is not counted.
  Time late = std::chrono::milliseconds{40};

  /// A suspect is declared dead after this many probe intervals, times log10 of the members where
  /// that is more than 1, when as many others as `confirmations` suspect it too, or all that are
  /// not suspected themselves; where none does, after `suspicion_max` times that.
  double suspicion_intervals = 6;
  double suspicion_max = 6;
  std::size_t confirmations = 3;

  /// News goes to so many random members each time, and with every probe.
  Time gossip_every = std::chrono::milliseconds{100};
  std::size_t gossip_to = 3;
  /// Each member tells a piece of news this many times, times log2 of the members.
  double gossip_repeats = 3;

  /// A message is at most this large in bytes by wire_bytes(), with the news that rides along.
  std::size_t message_bytes = 4096;
  /// The same for Records.
  std::size_t records_bytes = 60'000;

  /// A random member is compared with after this time, doubled from `sync_first` after a join.
  Time sync_first = std::chrono::milliseconds{500};
  Time sync_every = std::chrono::seconds{10};
  /// A seed node that does not answer is given up for the next one after this time.
  Time join_again = std::chrono::milliseconds{500};
  /// Each dead member is tried again once in this time, by one of the others on average.
  Time retry_every = std::chrono::milliseconds{500};
  /// And forgotten after this.
  Time dead_for = std::chrono::minutes{10};

  /// At most this many members are known, the dead among them; others are passed over.
  std::size_t members_max = 200'000;
  /// Who claims more workers, or longer strings in bytes, is passed over.
  std::uint32_t workers_max = 65'536;
  std::size_t text_max = 255;
};

/// One at a time; not thread-safe. Messages may be lost, late, repeated, or nonsense.
class Membership {
 public:
  /// `salt`: any random number.
  Membership(MembershipOptions options, std::uint64_t salt);

  /// Call first, once.
  void start(const MembershipContext& context);
  void on(const MembershipContext& context, const MembershipMessage& message);
  void on_timer(const MembershipContext& context);
  /// Says goodbye, to some members at once. Nobody is probed or suspected any more.
  void leave(const MembershipContext& context);
  /// This member offers so many workers from now on.
  void offer(const MembershipContext& context, std::uint32_t workers);

  [[nodiscard]] const NodeRecord& self() const noexcept { return self_; }
  /// The others.
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
  /// One that asks to join under another's name.
  struct JoinAttempt {
    Time since;
    bool is_refused = false;
  };
  enum class Source { gossip, sync };
  static constexpr Time never = Time::max();
  /// Of members that are probed for others at a time; more requests are refused by a nack.
  static constexpr std::size_t relays_max = 1024;
  /// Suspects passed over in one interval.
  static constexpr std::size_t told_max = 3;
  /// The most of these that are kept; beyond, the one that came first is forgotten.
  static constexpr std::size_t join_attempts_max = 64;
  /// A message may come this much later than it was sent.
  static constexpr Time name_doubt = std::chrono::milliseconds{250};
  /// In one message; others are passed over.
  static constexpr std::size_t updates_max = 1024;
  static constexpr std::size_t records_max = 65'536;
  /// Nobody raises its incarnation this far while others do not look.
  static constexpr std::uint64_t incarnation_jump_max = std::uint64_t{1} << 32U;

  void begin(const MembershipContext& context);
  void finish(const MembershipContext& context);
  [[nodiscard]] Time next_deadline() const;

  // What is heard.
  void receive(const MembershipContext& context, const NodeRecord& from, const Ping& ping);
  void receive(const MembershipContext& context, const NodeRecord& from, const PingAck& ack);
  void receive(const MembershipContext& context, const NodeRecord& from, const PingRequest& asked);
  void receive(const MembershipContext& context, const NodeRecord& from, const PingNack& nack);
  void receive(const MembershipContext& context, const NodeRecord& from, const Digest& digest);
  void receive(const MembershipContext& context, const NodeRecord& from, const Records& page);
  void receive(const MembershipContext& context, const NodeRecord& from, const NameTaken& taken);
  void receive(const MembershipContext&, const NodeRecord&, const Gossip&) {}

  // Whose a name is (membership_names.cpp).
  /// False where `from` is not heard, for it comes under another's name.
  [[nodiscard]] bool may_join(const MembershipContext& context, const NodeRecord& from);
  /// `from` lives, and is a member.
  void settle_name(const MembershipContext& context, const NodeRecord& from);
  void refuse(const MembershipContext& context, const NodeRecord& member, const NodeRecord& holder);
  void bury(const MembershipContext& context, NodeId id);

  // What is known of others (membership_view.cpp).
  [[nodiscard]] bool is_sane(const NodeRecord& record) const;
  void learn(const MembershipContext& context, const NodeUpdate& update, Source source);
  MemberEntry* admit(const MembershipContext& context, const NodeRecord& record);
  void learn_of_self(const NodeRecord& record);
  void adopt(const MembershipContext& context, MemberEntry& entry, NodeRecord record, NodeId by);
  void confirm(MemberEntry& entry, NodeId by);
  void renew(std::uint64_t above);
  void suspect(const MembershipContext& context, NodeId id);
  void judge(const MembershipContext& context);
  /// True where this member suspects it itself.
  [[nodiscard]] bool accused(const MemberEntry& entry) const;
  [[nodiscard]] std::size_t confirmers() const;
  [[nodiscard]] Time patience(const MemberEntry& entry) const;
  void set_deadline(MemberEntry& suspect);
  void forget(NodeId id);
  void forget_old();
  void spread(NodeId id);
  void ail(unsigned by);

  // What is said.
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
  /// When the carrier was to call on_timer, on its clock.
  Time due_ = never;
  Timer timer_;

  std::optional<Probe> probe_;
  std::uint64_t sequence_ = 0;
  Time probe_at_ = never;
  std::map<std::uint64_t, Relay> relays_;
  /// Relays that are owed a nack, in the order of their times.
  std::deque<std::uint64_t> nacks_;
  /// Suspicions in the order of their deadlines; the dead and those that left, of their times.
  std::set<std::pair<Time, NodeId>> suspicions_;
  std::set<std::pair<Time, NodeId>> graves_;

  Time gossip_at_{};
  Time sync_at_ = never;
  Time sync_wait_{};
  /// No comparison begins before.
  Time sync_free_at_{};
  Time join_at_ = never;
  std::size_t seed_ = 0;
  Time retry_at_ = never;
  std::map<NodeId, JoinAttempt> join_attempts_;
};

}  // namespace starling::core
