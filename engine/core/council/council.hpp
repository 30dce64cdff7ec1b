/// Decides on configurations, one an epoch: single-decree Paxos (Lamport, "Paxos Made Simple",
/// 2001) among the council of the epoch before, one instance an epoch as in Vertical Paxos
/// (Lamport, Malkhi, Zhou, PODC 2009).
///
/// Every member has a Council object. Council members promise and accept; one that suspects all
/// lower ones proposes, after it has asked every member which ranges that member holds. A proposer
/// may receive nothing without noticing: so if nothing is decided, the next council member proposes
/// too, and then the one after it. Agreement does not depend on which member proposes. No
/// message asks for a past epoch: if on() returns false, its caller answers a message of an older
/// epoch with the configuration.
///
/// A member that the proposer suspects is removed at once; a member that only others suspect is
/// removed when they report it. If two members do not receive from each other, one must go, because
/// every member must reach every other: see at_odds().
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

/// A message may name a round at most this far beyond all that were received; each ballot is one
/// round. A Prepare or Accept of a later round is ignored, so that no sender can use the rounds up.
inline constexpr std::uint64_t round_jump_max = std::uint64_t{1} << 20U;

/// Later ballots replace earlier ones: by round, then by proposer.
struct Ballot {
  std::uint64_t round = 0;
  MemberId by = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.round, m.by); }
  auto operator<=>(const Ballot&) const = default;
};

// --- messages between councils ------------------------------------------------------------------
// `epoch` is the epoch to be decided; in Ask and RangeReport, the sender's epoch.

/// Asks which ranges the receiver holds. The receiver answers at once, and again whenever they
/// change within the epoch.
struct Ask {
  Epoch epoch;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch); }
};
struct RangeReport {
  Epoch epoch;
  /// Ranges of which the sender holds every acknowledged update, ascending.
  std::vector<RangeId> full;

  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.full); }
};
struct Prepare {
  Epoch epoch;
  Ballot ballot;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot); }
};
struct Promise {
  Epoch epoch;
  Ballot ballot;
  /// The ballot in which the sender last accepted a value, and that value.
  Ballot accepted;
  ConfigurationPtr value;

  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot, m.accepted, m.value); }
};
/// The sender has promised not to take part in a ballot below `promised`.
struct Nack {
  Epoch epoch;
  Ballot promised;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.promised); }
};
struct Accept {
  Epoch epoch;
  Ballot ballot;
  ConfigurationPtr value;

  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot, m.value); }
};
struct Accepted {
  Epoch epoch;
  Ballot ballot;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot); }
};
/// To the council: the sender has received nothing from these members for long. A later report
/// replaces an earlier one. A report names no epoch, because a member that receives nothing does
/// not learn of epochs either.
struct SuspicionReport {
  std::vector<MemberIncarnation> silent;
  static constexpr auto fields(auto& m) { return std::tie(m.silent); }
};
using CouncilMessage =
    std::variant<Ask, RangeReport, Prepare, Promise, Nack, Accept, Accepted, SuspicionReport>;

// --- effects ------------------------------------------------------------------------------------

/// Send this message; `to` may be this member itself.
struct CouncilSend {
  MemberId to;
  CouncilMessage message;
};
/// This is the configuration of the next epoch: adopt it, and send it to all members of the old and
/// the new one.
struct Decided {
  ConfigurationPtr configuration;
};
using CouncilEffect = std::variant<CouncilSend, SetTimer, Decided, Fail>;

struct CouncilContext {
  Time now;
  Random& random;
  std::vector<CouncilEffect>& out;
};

struct CouncilOptions {
  Member self;
  std::size_t copies = 2;
  /// See PendingChanges.
  std::size_t owners = 0;
  bool bsp = false;
  /// A proposer waits this long for answers of members that it does not suspect.
  Time ask_within = std::chrono::milliseconds{500};
  /// If a change is due and nothing is decided for this long, the next council member proposes too.
  Time turn = std::chrono::milliseconds{1500};
  /// A suspicion that led to no decision for this long is reported to the council.
  Time report_after = std::chrono::seconds{1};
  /// After a lost ballot a proposer waits between one and two times this, doubled at each loss.
  Time back_off = std::chrono::milliseconds{20};
  Time back_off_max = std::chrono::seconds{2};
  /// A request to join or leave is kept this long; its sender repeats it.
  Time change_holds = std::chrono::seconds{2};
  /// A range without a live owner that holds it is given up after this time, and with it the job:
  /// a suspicion may yet turn out to be wrong.
  Time give_up_after = std::chrono::seconds{30};
  /// A member that suspects another for this long without a decision ends the job: there is no
  /// majority.
  Time patience = std::chrono::seconds{60};
};

/// One call at a time; not thread-safe. Late and repeated messages do no harm; the channel sends
/// lost ones again.
class Council {
 public:
  explicit Council(CouncilOptions options) : options_(options) {}

  /// `configuration` is decided, and later than all earlier ones.
  void on_configuration(const CouncilContext& context, ConfigurationPtr configuration);

  /// Failure detection suspects or trusts one incarnation. Both ignore an incarnation that the
  /// configuration does not name.
  void suspect(const CouncilContext& context, MemberId id, Incarnation incarnation);
  void trust(const CouncilContext& context, MemberId id, Incarnation incarnation);
  /// `member` wants to join, or to leave.
  void join(const CouncilContext& context, const Member& member);
  void leave(const CouncilContext& context, const Member& member);

  /// This member holds every acknowledged update of the ranges `full`, ascending, and of no others.
  void on_full_ranges(const CouncilContext& context, std::vector<RangeId> full);

  /// Returns false, and does nothing, if the message is of another epoch.
  [[nodiscard]] bool on(const CouncilContext& context, MemberId from,
                        const CouncilMessage& message);
  void on_timer(const CouncilContext& context);

  [[nodiscard]] bool suspects(MemberId id) const;

 private:
  enum class Phase { idle, preparing, accepting };
  struct Suspicion {
    MemberId id;
    Incarnation incarnation;
    Time since;
  };
  struct PendingChange {
    Member member;
    bool leave;
    Time until;
  };

  void receive(const CouncilContext& context, MemberId from, const Ask& ask);
  void receive(const CouncilContext& context, MemberId from, const RangeReport& report);
  void receive(const CouncilContext& context, MemberId from, const Prepare& prepare);
  void receive(const CouncilContext& context, MemberId from, const Promise& promise);
  void receive(const CouncilContext& context, MemberId from, const Nack& nack);
  void receive(const CouncilContext& context, MemberId from, const Accept& accept);
  void receive(const CouncilContext& context, MemberId from, const Accepted& accepted);
  void receive(const CouncilContext& context, MemberId from, const SuspicionReport& report);

  void add(const CouncilContext& context, const PendingChange& change);
  void report_suspicions(const CouncilContext& context);
  void review(const CouncilContext& context);
  void ask_everyone(const CouncilContext& context);
  [[nodiscard]] std::size_t rank() const;
  [[nodiscard]] bool has_cause(Time now) const;
  [[nodiscard]] bool heard(MemberId id) const;
  [[nodiscard]] bool answered_all() const;
  [[nodiscard]] bool owners_answered_of(RangeId range) const;
  [[nodiscard]] std::vector<MemberId> at_odds() const;
  [[nodiscard]] PendingChanges pending(Time now) const;
  /// Returns the configuration to propose, or nullptr; sets a timer where it must wait.
  ConfigurationPtr next(const CouncilContext& context);
  void begin_ballot(const CouncilContext& context);
  void send_council(const CouncilContext& context, const CouncilMessage& message) const;
  void wake(const CouncilContext& context, Time at);

  CouncilOptions options_;
  ConfigurationPtr configuration_;
  std::vector<Suspicion> suspicions_;
  std::vector<PendingChange> pending_;
  std::vector<RangeId> full_ranges_;
  /// The suspicions that this member has reported to the council of this epoch.
  std::vector<MemberIncarnation> reported_;

  [[nodiscard]] bool learn_round(const Ballot& ballot);

  // The state of a council member that votes on the next epoch.
  Ballot promised_;
  Ballot accepted_;
  ConfigurationPtr accepted_value_;

  // The state of a proposer of the next epoch.
  Phase phase_ = Phase::idle;
  Ballot ballot_;
  /// The highest ballot known in this epoch.
  Ballot highest_;
  std::vector<MemberId> voters_;
  Ballot best_accepted_;
  ConfigurationPtr value_;
  unsigned losses_ = 0;
  Time retry_at_{};
  /// Since when a change has been due.
  std::optional<Time> cause_since_;
  std::optional<Time> asked_at_;
  std::optional<Time> lost_since_;
  /// The ranges that each member holds, as it answered in this epoch.
  std::vector<std::pair<MemberId, std::vector<RangeId>>> answers_;

  /// The suspicions of each member, as it reported them.
  std::map<MemberIncarnation, std::vector<MemberIncarnation>> reports_;

  /// The members that have sent Ask in this epoch.
  std::vector<MemberId> requesters_;
  Timer timer_;
};

}  // namespace starling::core
