/// One member of a job as a core. It holds the member's role, which says what the member does, and
/// in a job on several nodes its Council and a link to every other member.
///
/// A core is one incarnation of one member. If another member sends the core a configuration that
/// excludes it, the core ends (Excluded); a new incarnation may join. If the core's own ballot has
/// decided such a configuration, the core stays a member until another member sends it.
///
///     start -> [joining] -> member --declared dead, or has left--> excluded
///                             \------the job cannot go on--------> failed
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "starling/engine/core/member/peer_message.hpp"
#include "starling/engine/core/member/roles.hpp"

namespace starling::core {

/// Identifies a timer of a member in on_timer.
using TimerKey = std::uint64_t;

/// Call on_timer with this key at this time or soon after.
struct MemberTimer {
  Time at;
  TimerKey key;
};
/// Send this envelope over the network. It may get lost.
struct Dispatch {
  Envelope envelope;
};
/// The job continues without this incarnation of the member.
struct Excluded {};
/// LocalMessage: send it to the member of this process to which it is addressed.
/// MemberAnswer: the answer to the question with this number, which ask() was called with.
/// The outputs of the roles are for the driver too.
using MemberEffect =
    AnyOf<Concat<TypeList<Dispatch, LocalMessage, MemberTimer, Fail, Excluded, MemberAnswer>,
                 RoleOutputs>>;
using MemberEffects = std::vector<MemberEffect>;

struct MemberContext {
  Time now;
  Random& random;
  MemberEffects& out;
  /// Empty lists, if the driver has some: the core uses their memory, and leaves them empty. A
  /// driver of many members saves the allocations at each event.
  EffectScratch* scratch = nullptr;
};

struct MemberOptions {
  Member self;
  /// Member ids are below this; a member with another id cannot join. All members have the same
  /// value.
  MemberId members_max = 1024;
  /// The configuration of epoch 1, for the members that it names; nullptr for members that join
  /// later.
  ConfigurationPtr first_configuration;
  /// A joining member sends its JoinRequests to random members of these.
  std::vector<MemberId> seeds;
  /// The council's options. The core sets `self` and the fields that Placement has too: `bsp`,
  /// `unplaced_ranges` and `node_by_node`.
  CouncilOptions council;
  ChannelOptions channel;
  /// The options of the role, which say what the member does. All members have the same role. Must
  /// be set: a MemberCore without them ends the program (STARLING_CHECK).
  AnyRoleOptions role;
  /// A request to join or to leave is repeated after this time.
  Time request_every = std::chrono::milliseconds{200};
  /// The member sends an EpochProbe to a random other member at this interval.
  Time probe_interval = std::chrono::milliseconds{500};
};

/// One call at a time; not thread-safe.
class MemberCore {
 public:
  explicit MemberCore(MemberOptions options);

  /// For a job of one process: adopts its configuration, so that the member answers others before
  /// start(), which then only lets the role begin. Requires: the first configuration is set, and is
  /// that of one process; neither function was called before.
  void prepare(const MemberContext& context);
  /// Adopts the first configuration if there is one, else sends the first JoinRequest. Requires:
  /// start() was not called before.
  void start(const MemberContext& context);
  /// Handles a packet from another node. Ignores one that is addressed to another member, or whose
  /// sender is not in the configuration, except configurations and requests to join.
  void on_packet(const MemberContext& context, const Envelope& envelope);
  /// Handles a message of a member of this process. Ignores it if this incarnation of the sender is
  /// not a member, or if the sender knows another configuration. Requires: prepare() was called.
  void on_local_message(const MemberContext& context, const LocalMessage& local);
  void on_timer(const MemberContext& context, TimerKey key);
  /// Passes the result of a role's output, or a request of the driver, to the role.
  void on_input(const MemberContext& context, RoleInput input);

  /// Answers a question that an actor asks this member. A member that has failed answers too.
  [[nodiscard]] Answer answer(const Question& question);
  /// Asks a member a question, for an actor on this node: the member `to` or, if `to` is nullopt,
  /// the one that the role's addressee() returns. One MemberAnswer follows. It is a Refusal if
  /// nobody can be asked, if the asked member leaves the job before it has answered, or if 1024
  /// later questions are open. While this member joins, the question waits until it has joined.
  /// Requires: the question's number is higher than that of every earlier question.
  void ask(const MemberContext& context, std::optional<MemberId> to, MemberQuestion question);

  /// Failure detection calls suspect() if it has received nothing from this incarnation of a member
  /// for a long time, and trust() if it receives from the incarnation again. Both ignore an
  /// incarnation that the configuration does not name. docs/design/0006-range-ownership.md says
  /// what failure detection must guarantee.
  void suspect(const MemberContext& context, MemberId id, Incarnation incarnation);
  void trust(const MemberContext& context, MemberId id, Incarnation incarnation);
  /// Lets the role begin nothing new. The member stays, and serves what it holds. Ignored unless
  /// the state is `member`: the caller must repeat it for a member that is joining.
  void stop(const MemberContext& context);
  /// Lets the role begin nothing new, hands over this member's ranges, and leaves the job. Ignored
  /// unless the state is `member`, and in a job of one process.
  void leave(const MemberContext& context);

  /// Handles a message as if a channel had delivered it; for tests without a network. Ignores the
  /// message if this incarnation of the sender is not a member.
  void on_message(const MemberContext& context, MemberId from, Incarnation incarnation,
                  const PeerMessagePtr& peer_message);

  enum class State { idle, joining, member, excluded, failed };
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] const Member& self() const noexcept { return options_.self; }
  [[nodiscard]] const MemberOptions& options() const noexcept { return options_; }
  /// Returns nullptr before the first configuration.
  [[nodiscard]] const ConfigurationPtr& configuration() const noexcept { return configuration_; }
  [[nodiscard]] bool suspects(MemberId id) const {
    return council_ != nullptr && council_->suspects(id);
  }
  /// Returns the role as an R. Requires: it is the role of the job.
  template <Role R>
  [[nodiscard]] R& role() {
    return std::get<R>(role_);
  }
  template <Role R>
  [[nodiscard]] const R& role() const {
    return std::get<R>(role_);
  }

 private:
  /// This member's link to another member: one channel for each traffic class between members.
  struct Link {
    /// Indexed by TrafficClass: control, data.
    std::array<Channel<PeerMessagePtr>, 2> channels;
    /// The latest epoch whose configuration the other member knows or was sent. It has that
    /// configuration before it handles a message that is sent to it later (Link::on()).
    Epoch epoch_sent = 0;
    /// The key of this link's timers. The lower 31 bits are the other member's id. The upper 32
    /// bits number the links of this core, so that a link to a former incarnation has another key.
    /// The bit between them, data_bit, is set in the keys of the data channel.
    TimerKey timer_key = 0;

    [[nodiscard]] Channel<PeerMessagePtr>& channel(TrafficClass traffic_class) {
      return channels[static_cast<std::size_t>(traffic_class)];
    }
    void on(const ChannelContext<PeerMessagePtr>& context, const Envelope& envelope,
            Epoch known_epoch);
    [[nodiscard]] TimerKey timer_key_of(TrafficClass traffic_class) const {
      return timer_key | (traffic_class == TrafficClass::data ? data_bit : 0);
    }
    [[nodiscard]] bool has_timer(TimerKey key) const { return (key & ~data_bit) == timer_key; }
    static constexpr TimerKey data_bit = TimerKey{1} << 31U;
    static TrafficClass traffic_class_of(TimerKey key) {
      return (key & data_bit) != 0 ? TrafficClass::data : TrafficClass::control;
    }
    static MemberId member_of(TimerKey key) { return static_cast<MemberId>(key & ~data_bit); }
  };
  using LinkEffects = ChannelEffects<PeerMessagePtr>;

  // The keys of the timers that belong to no link.
  static constexpr TimerKey council_key = 0;
  /// Fires when a request to join or to leave is to be repeated.
  static constexpr TimerKey request_key = 1;
  static constexpr TimerKey probe_key = 2;
  /// This key and those after it, up to 32 bits, are the role's.
  static constexpr TimerKey first_role_key = 3;

  [[nodiscard]] Link* link(MemberId id) const;
  void execute_link_effects(const MemberContext& context, MemberId id, TrafficClass traffic_class,
                            LinkEffects effects);
  void send_by_link(const MemberContext& context, MemberId to, PeerMessagePtr peer_message);
  void post(const MemberContext& context, MemberId to, PeerMessagePtr peer_message);
  void post_to_council(const MemberContext& context, const PeerMessagePtr& peer_message);
  void send_configuration(const MemberContext& context, MemberId id);
  void send_unreliable(const MemberContext& context, MemberId to,
                       std::optional<Incarnation> incarnation, PeerMessagePtr peer_message) const;

  void deliver(const MemberContext& context, MemberId from, const PeerMessagePtr& peer_message);
  void receive_unreliable(const MemberContext& context, const Envelope& envelope);
  void receive_join_request(const MemberContext& context, const Envelope& envelope,
                            const Member& member);
  /// Returns true if `next` is well-formed, belongs to this job and is later than the known
  /// configuration.
  [[nodiscard]] bool may_adopt(const ConfigurationPtr& next) const;
  /// Ends an event: delivers the messages that this member sent to itself, and tells its council
  /// which ranges it holds if these have changed.
  void finish_event(const MemberContext& context);

  void adopt(const MemberContext& context, const ConfigurationPtr& next);
  void renew_links(const Configuration& next);
  void report_full_ranges(const MemberContext& context);
  void adopt_decided(const MemberContext& context, const ConfigurationPtr& next);
  void repeat_request(const MemberContext& context);
  void probe_epoch(const MemberContext& context);
  void fail(const MemberContext& context, std::string why);

  /// Calls `event(role, context)` and executes the role's effects. Returns the event's result, or
  /// true if it has none.
  template <class Event>
  bool run_role(const MemberContext& context, Event event);
  template <class Event>
  void run_council(const MemberContext& context, Event event);
  template <class Messages>
  void execute(const MemberContext& context, SendToMember<Messages>& send);
  template <class Messages>
  void execute(const MemberContext& context, SendToAll<Messages>& send);
  void execute(const MemberContext& context, const SpreadConfiguration&);
  void execute(const MemberContext& context, const RoleTimer& timer);
  void execute(const MemberContext& context, Fail& failure);
  template <class... Outputs>
  void execute(const MemberContext& context, std::variant<Outputs...>& output);

  void handle(const MemberContext& context, MemberId from, const PeerMessagePtr& peer_message,
              const CouncilMessage& message);
  void open_question(const MemberContext& context, std::optional<MemberId> to,
                     MemberQuestion question);
  void receive_answer(const MemberContext& context, MemberId from, const MemberAnswer& answer);
  void review_open_questions(const MemberContext& context);
  template <class M>
  void handle(const MemberContext& context, MemberId from, const PeerMessagePtr& peer_message,
              const M& message);

  MemberOptions options_;
  State state_ = State::idle;
  ConfigurationPtr configuration_;
  /// Indexed by the other member's id; nullptr if there is no link to it.
  std::vector<std::unique_ptr<Link>> links_;
  /// Counts the links that were ever made, for their timer keys.
  TimerKey link_count_ = 0;
  AnyRole role_;
  /// nullptr in a job of one process.
  std::unique_ptr<Council> council_;
  /// The role's full_ranges_version() when the council was last told which ranges this member
  /// holds.
  std::uint64_t reported_version_ = 0;
  /// The questions that other members have not answered yet.
  struct OpenQuestion {
    /// The member that was asked; absent while this member joins, and cannot ask yet.
    std::optional<MemberIncarnation> asked;
    /// The argument `to` of ask(), until the question is sent.
    std::optional<MemberId> to;
    Question question;
  };
  /// By number. Null until the first question: a process may have thousands of members.
  std::unique_ptr<std::map<std::uint64_t, OpenQuestion>> open_questions_;
  /// The epoch of the configuration that this member's ballot has decided, and that excludes it; 0
  /// if there is none.
  Epoch excluded_in_ = 0;
  bool is_leaving_ = false;
  Time join_started_at_{};
  /// Messages that this member sends to itself, in order.
  std::vector<PeerMessagePtr> inbox_;
  /// True between prepare() and start().
  bool is_prepared_ = false;
  /// The timer of request_key.
  Timer timer_;
};

}  // namespace starling::core
