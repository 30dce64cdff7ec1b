/// Decides on configurations, one an epoch: single-decree Paxos (Lamport, "Paxos Made Simple",
/// 2001) among the council of the epoch before, one instance an epoch as in Vertical Paxos
/// (Lamport, Malkhi, Zhou, PODC 2009).
///
/// Every member has one. Those of the council promise and accept; the lowest of them that it does
/// not suspect proposes, and asks everyone beforehand which ranges they hold. It may hear nothing
/// and not know: so where nothing is decided the next of the council does too, and the next after
/// it. Agreement does not depend on who does. The past is never asked for: whoever hears something
/// of an older epoch answers with the configuration, and that is its carrier's business.
///
/// Who is suspected at once goes; who is suspected by others alone goes when they complain. Of two
/// that do not hear each other one must go, for all depends on all speaking to all: see at_odds().
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "starling/engine/core/configuration.hpp"
#include "starling/engine/core/timer.hpp"

namespace starling::core {

/// A message may name a round so far beyond all that were heard of; each ballot is one round. What
/// names a later one counts as if it were not said, so that nobody can use the rounds up.
inline constexpr std::uint64_t round_jump_max = std::uint64_t{1} << 20U;

/// Proposals are tried in this order.
struct Ballot {
  std::uint64_t round = 0;
  MemberId by = 0;
  auto operator<=>(const Ballot&) const = default;
};

// --- what councils say to one another -----------------------------------------------------------
// `epoch` is the epoch to be decided; in Ask and RangeReport, the sender's epoch.

/// Which ranges do you hold? Answered at once, and whenever that changes within the epoch.
struct Ask {
  Epoch epoch;
};
struct RangeReport {
  Epoch epoch;
  /// Ranges of which the sender has all that was acknowledged, ascending.
  std::vector<RangeId> full;
};
struct Prepare {
  Epoch epoch;
  Ballot ballot;
};
struct Promise {
  Epoch epoch;
  Ballot ballot;
  /// What the sender accepted last, and in which ballot.
  Ballot accepted;
  ConfigurationPtr value;
};
/// The sender has promised not to take part in a ballot below this one.
struct Nack {
  Epoch epoch;
  Ballot promised;
};
struct Accept {
  Epoch epoch;
  Ballot ballot;
  ConfigurationPtr value;
};
struct Accepted {
  Epoch epoch;
  Ballot ballot;
};
/// To the council: the sender has heard nothing of these for long. A later one replaces it. Of no
/// epoch: whoever hears nothing does not hear of epochs either.
struct Suspicion {
  std::vector<MemberIncarnation> silent;
};
using CouncilMessage =
    std::variant<Ask, RangeReport, Prepare, Promise, Nack, Accept, Accepted, Suspicion>;

// --- effects ------------------------------------------------------------------------------------

/// Also to oneself.
struct CouncilSend {
  MemberId to;
  CouncilMessage message;
};
/// This is the configuration of the next epoch: adopt it, and tell everyone in the old and the new.
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
  /// A proposer waits this long for those whom it asked and does not suspect.
  Time ask_within = std::chrono::milliseconds{500};
  /// Where there is cause and nothing is decided for so long, the next of the council proposes too.
  Time turn = std::chrono::milliseconds{1500};
  /// A suspicion that nobody has acted on for so long is told to the council.
  Time report_after = std::chrono::seconds{1};
  /// After a lost ballot it waits between one and two of this, doubled at each loss.
  Time back_off = std::chrono::milliseconds{20};
  Time back_off_max = std::chrono::seconds{2};
  /// A change to join or leave holds this long; whoever has it repeats it.
  Time change_holds = std::chrono::seconds{2};
  /// A range without a live owner that holds it is given up after this time, and with it the job:
  /// a suspicion may yet turn out to be wrong.
  Time give_up_after = std::chrono::seconds{30};
  /// Whoever suspects a member this long, and nobody decides, ends the job: it has no majority.
  Time patience = std::chrono::seconds{60};
};

/// One at a time; not thread-safe. Messages may come late and twice without harm; lost ones are the
/// channel's business.
class Council {
 public:
  explicit Council(CouncilOptions options) : options_(options) {}

  /// `configuration` is decided, and newer than all before.
  void on_configuration(const CouncilContext& context, ConfigurationPtr configuration);

  /// Failure detection's verdicts on one incarnation; those on others than the configuration names
  /// do not count.
  void suspect(const CouncilContext& context, MemberId id, Incarnation incarnation);
  void trust(const CouncilContext& context, MemberId id, Incarnation incarnation);
  /// `member` wants to be one, or does not want to be one any more.
  void join(const CouncilContext& context, const Member& member);
  void leave(const CouncilContext& context, const Member& member);

  /// The ranges held here, ascending.
  void hold(const CouncilContext& context, std::vector<RangeId> full);

  /// False where the message is of an older epoch, and nothing was done.
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
  void receive(const CouncilContext& context, MemberId from, const RangeReport& holdings);
  void receive(const CouncilContext& context, MemberId from, const Prepare& prepare);
  void receive(const CouncilContext& context, MemberId from, const Promise& promise);
  void receive(const CouncilContext& context, MemberId from, const Nack& refuse);
  void receive(const CouncilContext& context, MemberId from, const Accept& accept);
  void receive(const CouncilContext& context, MemberId from, const Accepted& accepted);
  void receive(const CouncilContext& context, MemberId from, const Suspicion& suspicion);

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
  /// What to propose, if anything; sees to its timers where something is missing.
  ConfigurationPtr next(const CouncilContext& context);
  void begin_ballot(const CouncilContext& context);
  void send_council(const CouncilContext& context, const CouncilMessage& message) const;
  void wake(const CouncilContext& context, Time at);

  CouncilOptions options_;
  ConfigurationPtr configuration_;
  std::vector<Suspicion> suspicions_;
  std::vector<PendingChange> pending_;
  std::vector<RangeId> held_;
  /// What this member has complained of to the council of this epoch.
  std::vector<MemberIncarnation> reported_;

  [[nodiscard]] bool note(const Ballot& ballot);

  // As one of the council, on the next epoch.
  Ballot promised_;
  Ballot accepted_;
  ConfigurationPtr accepted_value_;

  // As who proposes it.
  Phase phase_ = Phase::idle;
  Ballot ballot_;
  /// The highest ballot ever heard of.
  Ballot highest_;
  std::vector<MemberId> voters_;
  Ballot best_accepted_;
  ConfigurationPtr value_;
  unsigned losses_ = 0;
  Time retry_at_{};
  /// Since when there has been cause to decide.
  std::optional<Time> cause_since_;
  std::optional<Time> asked_at_;
  std::optional<Time> lost_since_;
  /// By member who answered in this epoch.
  std::vector<std::pair<MemberId, std::vector<RangeId>>> answers_;

  /// Which members complain, and of whom.
  std::map<MemberIncarnation, std::vector<MemberIncarnation>> suspicions_;

  /// Who asked in this epoch.
  std::vector<MemberId> requesters_;
  Timer timer_;
};

}  // namespace starling::core
