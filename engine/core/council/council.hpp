/// Decides on configurations, one an epoch: single-decree Paxos (Lamport, "Paxos Made Simple",
/// 2001) among the council of the epoch before, one instance an epoch as in Vertical Paxos
/// (Lamport, Malkhi, Zhou, PODC 2009).
///
/// Every member has a Council object. Council members promise and accept. The council member that
/// suspects all council members with lower ids asks all members for the ranges of which they are
/// full owners, which hold every acknowledged update (RangeQuery). It then proposes. A proposer
/// that can send but not receive decides nothing, and nobody suspects it. So if nothing is decided,
/// the next council member proposes too, and then the one after it; Paxos lets several members
/// propose. If a message of an older epoch comes, on() returns false, and its caller sends the
/// sender the configuration.
///
/// The proposer removes the members that its own failure detection suspects. Other members report
/// their suspicions to it: if one member does not receive from another, one of the two must go,
/// because every member must reach every other. See choose_conflicting().
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

/// A Prepare or Accept is ignored if its ballot round is more than this beyond the highest known
/// round, so that no sender can use up the rounds.
inline constexpr std::uint64_t round_jump_max = std::uint64_t{1} << 20U;

/// One attempt to decide, ordered by round and then by proposer: later ballots replace earlier
/// ones.
struct Ballot {
  std::uint64_t round = 0;
  MemberId proposer = 0;

  static constexpr auto fields(auto& m) { return std::tie(m.round, m.proposer); }
  auto operator<=>(const Ballot&) const = default;
};

// --- messages of the council --------------------------------------------------------------------
// `epoch` is the epoch whose configuration the council decides. In RangeQuery and RangeReport, it
// is the sender's present epoch, which is the epoch before.

/// Asks of which ranges the receiver is a full owner. The receiver answers with a RangeReport at
/// once, and again whenever these ranges change within the epoch.
struct RangeQuery {
  Epoch epoch;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch); }
};
/// Answers RangeQuery.
struct RangeReport {
  Epoch epoch;
  /// The ranges of which the sender is a full owner: it holds every acknowledged update. Ascending.
  std::vector<RangeId> full;

  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.full); }
};
/// Phase 1a of Paxos: asks to ignore earlier ballots from now on.
struct Prepare {
  Epoch epoch;
  Ballot ballot;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot); }
};
/// Phase 1b of Paxos: answers Prepare.
struct Promise {
  Epoch epoch;
  Ballot ballot;
  /// The ballot in which the sender last accepted a value, and that value.
  Ballot accepted;
  ConfigurationPtr value;

  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot, m.accepted, m.value); }
};
/// Refuses a Prepare or an Accept: the sender has promised to ignore ballots below `promised`.
struct Nack {
  Epoch epoch;
  Ballot promised;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.promised); }
};
/// Phase 2a of Paxos: asks to accept `value`, the configuration of `epoch`.
struct Accept {
  Epoch epoch;
  Ballot ballot;
  ConfigurationPtr value;

  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot, m.value); }
};
/// Phase 2b of Paxos: answers Accept.
struct Accepted {
  Epoch epoch;
  Ballot ballot;
  static constexpr auto fields(auto& m) { return std::tie(m.epoch, m.ballot); }
};
/// To the council: the sender has suspected the members `silent` for CouncilOptions::report_after.
/// A later report replaces an earlier one. A report names no epoch, because a member that receives
/// nothing does not learn of new epochs, and its reports must count nevertheless.
struct SuspicionReport {
  std::vector<MemberIncarnation> silent;
  static constexpr auto fields(auto& m) { return std::tie(m.silent); }
};
using CouncilMessage = std::variant<RangeQuery, RangeReport, Prepare, Promise, Nack, Accept,
                                    Accepted, SuspicionReport>;

// --- effects ------------------------------------------------------------------------------------

/// Send this message to member `to`, which may be this member itself.
struct CouncilSend {
  MemberId to;
  CouncilMessage message;
};
/// This member's ballot has decided on this configuration of the next epoch: send it to its
/// members, and adopt it. If it excludes this member, adopt it only once another member knows it.
/// The effect may come again.
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
  /// The fields from here to `node_by_node` are as in PendingChanges.
  std::size_t replication_factor = 2;
  std::size_t owners = 0;
  bool bsp = false;
  std::size_t unplaced_ranges = 0;
  bool node_by_node = false;
  /// A proposer waits at most this long for the RangeReports of members that it does not suspect.
  Time answer_timeout = std::chrono::milliseconds{500};
  /// If a change is due and nothing is decided for this time, the next council member proposes too.
  Time turn = std::chrono::milliseconds{1500};
  /// A suspicion that has led to no decision for this time is reported to the council.
  Time report_after = std::chrono::seconds{1};
  /// After it has lost a ballot, a proposer waits a random time between this and twice this. Both
  /// bounds double with each further loss, until the lower one is at least `back_off_max`.
  Time back_off = std::chrono::milliseconds{20};
  Time back_off_max = std::chrono::seconds{2};
  /// A request to join or leave expires after this time; its sender repeats it.
  Time request_expiry = std::chrono::seconds{2};
  /// If a range has had no living holder for this time, it is given up, and the job ends. Until
  /// then the suspicion of a holder may turn out to be wrong.
  Time give_up_after = std::chrono::seconds{30};
  /// A member that has suspected another for this time without a decision reports that the job
  /// cannot continue: there is no majority.
  Time stuck_after = std::chrono::seconds{60};
};

/// One call at a time; not thread-safe. Late and repeated messages do no harm. The channel sends
/// lost messages again.
class Council {
 public:
  explicit Council(CouncilOptions options) : options_(options) {}

  /// The council has decided on `configuration`. Requires: its epoch is later than all earlier
  /// ones.
  void on_configuration(const CouncilContext& context, ConfigurationPtr configuration);

  /// Failure detection suspects, or trusts again, one incarnation of a member. Both functions
  /// ignore an incarnation that the configuration does not name.
  void suspect(const CouncilContext& context, MemberId id, Incarnation incarnation);
  void trust(const CouncilContext& context, MemberId id, Incarnation incarnation);
  /// `member` asks to join, or to leave. `epoch` is the epoch in which it asks to leave.
  void join(const CouncilContext& context, const Member& member);
  void leave(const CouncilContext& context, const Member& member, Epoch epoch);

  /// This member is a full owner of the ranges `full`, ascending, and of no other range.
  void on_full_ranges(const CouncilContext& context, std::vector<RangeId> full);

  /// Returns false, and does nothing, if the message is of another epoch.
  [[nodiscard]] bool on(const CouncilContext& context, MemberId from,
                        const CouncilMessage& message);
  void on_timer(const CouncilContext& context);

  [[nodiscard]] bool suspects(MemberId id) const {
    return std::ranges::find(suspicions_, id, &Suspicion::id) != suspicions_.end();
  }

 private:
  enum class Phase { idle, preparing, accepting };
  struct Suspicion {
    MemberId id;
    Incarnation incarnation;
    Time suspected_at;
  };
  struct Request {
    Member member;
    /// True if the member wants to leave, false if it wants to join.
    bool is_leave;
    Time expires_at;
  };

  void receive(const CouncilContext& context, MemberId from, const RangeQuery& query);
  void receive(const CouncilContext& context, MemberId from, const RangeReport& report);
  void receive(const CouncilContext& context, MemberId from, const Prepare& prepare);
  void receive(const CouncilContext& context, MemberId from, const Promise& promise);
  void receive(const CouncilContext& context, MemberId from, const Nack& nack);
  void receive(const CouncilContext& context, MemberId from, const Accept& accept);
  void receive(const CouncilContext& context, MemberId from, const Accepted& accepted);
  void receive(const CouncilContext& context, MemberId from, const SuspicionReport& report);

  void add(const CouncilContext& context, const Request& request);
  void report_suspicions(const CouncilContext& context);
  void propose_if_due(const CouncilContext& context);
  void ask_everyone(const CouncilContext& context);
  /// Returns how many council members have their turn to propose before this one.
  [[nodiscard]] std::size_t earlier_proposers() const;
  [[nodiscard]] bool is_change_due(Time now) const;
  /// True if `id` is not suspected and has not answered yet.
  [[nodiscard]] bool is_answer_missing(MemberId id) const {
    return !suspects(id) && !range_reports_.contains(id);
  }
  [[nodiscard]] bool has_everyone_answered() const {
    return std::ranges::none_of(configuration_->members,
                                [&](const Member& member) { return is_answer_missing(member.id); });
  }
  /// True while this member proposes nothing because others may still answer its RangeQuery. The
  /// planning of a proposal takes long if there are many ranges, so it is not done for each report
  /// that comes meanwhile.
  [[nodiscard]] bool is_awaiting_answers(Time now) const {
    return asked_at_ && now < *asked_at_ + options_.answer_timeout && !has_everyone_answered();
  }
  [[nodiscard]] bool have_holders_answered(RangeId range) const;
  [[nodiscard]] std::vector<MemberId> choose_conflicting(std::span<const MemberId> staying) const;
  /// Returns the changes that are pending. Reports of others remove neither this member nor one in
  /// `staying`.
  [[nodiscard]] PendingChanges pending_changes(Time now, std::vector<MemberId> staying = {}) const;
  /// Returns the configuration to propose. Returns nullptr if there is none yet, and sets a timer
  /// if time decides when there will be one.
  ConfigurationPtr choose_proposal(const CouncilContext& context);
  void begin_ballot(const CouncilContext& context);
  void send_council(const CouncilContext& context, const CouncilMessage& message) const {
    for (const MemberId id : configuration_->council)
      context.out.push_back(CouncilSend{id, message});
  }

  CouncilOptions options_;
  ConfigurationPtr configuration_;
  std::vector<Suspicion> suspicions_;
  /// The requests to join and to leave that this member has received.
  std::vector<Request> requests_;
  /// The ranges of which this member is a full owner, ascending.
  std::vector<RangeId> full_ranges_;
  /// The suspicions that this member has reported to the council of this epoch.
  std::vector<MemberIncarnation> own_report_;

  /// Raises `highest_` to `ballot`, but by round_jump_max rounds at most. Returns false if the
  /// round of `ballot` is beyond that.
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
  /// The council members that have answered in the present phase of `ballot_`, ascending.
  std::vector<MemberId> voters_;
  /// The highest ballot in which one of them has accepted a value.
  Ballot highest_accepted_;
  /// The value of that ballot or, if there is none, this member's own proposal.
  ConfigurationPtr value_;
  /// How many ballots this member has lost in this epoch, and when it may begin the next one.
  unsigned lost_ballots_ = 0;
  Time retry_at_{};
  /// When the pending change became due; absent if none is due.
  std::optional<Time> change_due_at_;
  /// When this member asked all members for their full ranges; absent if it has not in this epoch.
  std::optional<Time> asked_at_;
  /// Since when this member knows of a range without a living full owner; absent if there is none.
  std::optional<Time> range_lost_at_;
  /// By member: the ranges in its last RangeReport of this epoch.
  std::map<MemberId, std::vector<RangeId>> range_reports_;

  /// By reporter: the members that it suspects, from its last SuspicionReport.
  std::map<MemberIncarnation, std::vector<MemberIncarnation>> suspicion_reports_;

  /// The members that have sent RangeQuery in this epoch, ascending.
  std::vector<MemberId> requesters_;
  Timer timer_;
};

}  // namespace starling::core
