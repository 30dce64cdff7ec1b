/// A role: what the members of a job do. A member's core (core/member) has what every job needs:
/// who is a member, links, and the council. Its role does the rest. A role is a class in a folder
/// of its own, with its own messages; core/member/role_list.hpp lists the roles.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/base/result.hpp"
#include "starling/engine/core/council/configuration.hpp"
#include "starling/engine/core/effect.hpp"

namespace starling::core {

/// The facts that a role knows of its member from the beginning. They never change.
struct RoleSetup {
  Member self;
  /// Member ids are below this.
  MemberId members_max;
  /// The configuration of epoch 1; null on members that join later.
  ConfigurationPtr first_configuration;
};

/// How the council places the ranges of the job. PendingChanges explains the fields.
struct Placement {
  bool bsp = false;
  std::size_t unplaced_ranges = 0;
  bool node_by_node = false;
};

/// The facts on which the validity of a message depends, besides the receiver's role.
struct MessageScope {
  /// The receiver's configuration. Requires: it names the sender.
  const Configuration& configuration;
  MemberId from;
  /// Member ids are below this.
  MemberId members_max;
};

/// The member cannot answer a question; `why` is the reason.
struct Refusal {
  std::string why;
  static constexpr auto fields(auto& m) { return std::tie(m.why); }
};

// --- effects ------------------------------------------------------------------------------------

/// Send this message to a member, which may be this one.
template <class Messages>
struct SendToMember {
  MemberId to;
  AnyOf<Messages> message;
};
/// Send this message to all members, this one among them.
template <class Messages>
struct SendToAll {
  AnyOf<Messages> message;
};
/// Send the configuration to all members that may not know it.
struct SpreadConfiguration {};
/// Call on_timer with this key at this time or soon after. The keys of a role are below 2^31: the
/// core numbers them after those of its own timers, within 32 bits.
struct RoleTimer {
  Time at;
  std::uint32_t key;
};
/// The last alternative is an output: an effect that the member's driver executes.
template <class Messages, class Outputs>
using RoleEffect = std::variant<SendToMember<Messages>, SendToAll<Messages>, SpreadConfiguration,
                                RoleTimer, Fail, AnyOf<Outputs>>;

/// The argument `context` of a role's functions, each of which handles one event. `Sent` are the
/// role's Messages, `Results` are its Outputs, and `Lists` is its Scratch.
template <class Sent, class Results, class Lists>
struct RoleContext {
  using Effects = std::vector<RoleEffect<Sent, Results>>;
  Time now;
  Random& random;
  Effects& out;
  /// Empty lists whose memory the role may use, if the driver has some; the role leaves them empty.
  Lists* scratch = nullptr;

  void send(MemberId to, AnyOf<Sent> message) const {
    out.push_back(SendToMember<Sent>{to, std::move(message)});
  }
  void output(AnyOf<Results> result) const { out.push_back(std::move(result)); }
};

// --- the interface ------------------------------------------------------------------------------

/// The functions that a member's core requires of a role. One call at a time; not thread-safe.
/// Messages between members of one epoch arrive once and in order.
///
/// For each message M of `Messages` there are also
///     on(context, from, message)   M has come from a member. Returns false if the sender must be
///                                  sent the configuration, because it knows another one.
///     is_valid(scope, message)     Returns true if the sender may send this.
///                                  Called before on().
/// where `message` is a reference or, for on(), a shared pointer. For each input I of `Inputs`
///     on(context, input)           The driver brings the result of an output, or a request.
///     takes_when_failed<I>         True if a member that has failed takes the input too.
/// For each question Q of `Questions` and answer A of `Answers`, with references to both,
///     answer(question)             Returns an A, or a Refusal.
///     addressee(configuration, to, question)   Returns whom to ask: the member `to` or, if `to` is
///                                  nullopt, the one that can answer. An Error says why no member
///                                  can be asked.
///     is_valid_question(scope, question) and is_valid_answer(scope, answer)   As for messages.
///     is_answer(answer, question)  Returns true if this is an answer to the question.
template <class R>
concept Role = requires(R role, const R& constant, const typename R::Context& context,
                        const ConfigurationPtr& configuration, RoleSetup setup,
                        std::shared_ptr<const typename R::Options> options) {
  /// The name of the role in error messages.
  { R::name } -> std::convertible_to<std::string_view>;
  /// Lists of types: the messages between members, the effects for the driver, the driver's inputs,
  /// the questions that actors that are not members may ask, and the answers. The first three are
  /// not empty.
  typename R::Messages;
  typename R::Outputs;
  typename R::Inputs;
  typename R::Questions;
  typename R::Answers;
  /// The lists of RoleContext::scratch; no two roles have the same type.
  typename R::Scratch;
  /// The type of the options, which no other role has. It names its role.
  requires std::same_as<typename R::Options::Role, R>;
  R{std::move(options), std::move(setup)};

  /// Adopts a configuration, which names this member. `configuration` twice: the new one, and the
  /// one that this member knew before, perhaps several epochs earlier; null if it knew none. In a
  /// job on several nodes, the first call begins the role's work.
  role.on_configuration(context, configuration, configuration);
  /// Begins the role's work in a job of one process, in which on_configuration() does not.
  role.start(context);
  role.on_timer(context, std::uint32_t{});
  /// The job is to end: begin nothing new.
  role.stop(context);
  /// This member is to leave: begin nothing new, and hand over what only this member has.
  role.leave(context);
  /// Returns true if this member may leave.
  { constant.is_done() } -> std::same_as<bool>;
  /// Returns true if the configuration can belong to this job, as far as the role knows.
  { constant.fits(*configuration) } -> std::same_as<bool>;

  // --- for the council, which decides where ranges are (Configuration::ranges) ---
  { constant.placement() } -> std::same_as<Placement>;
  /// Returns the ranges of which this member is full (PendingChanges::full): it holds every
  /// acknowledged update of them. Ascending.
  { constant.full_ranges() } -> std::same_as<std::vector<RangeId>>;
  /// Returns how often full_ranges() has changed.
  { constant.full_ranges_version() } -> std::same_as<std::uint64_t>;
};

}  // namespace starling::core
