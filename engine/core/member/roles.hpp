/// The messages, effects, inputs and questions of all roles together, which follow from their list.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "starling/base/check.hpp"
#include "starling/engine/core/member/role_list.hpp"
#include "starling/engine/core/message_list.hpp"
#include "starling/engine/core/role/role.hpp"

namespace starling::core {

namespace detail {

/// The types that follow from a list of roles.
template <class List>
struct RoleTypes;
template <Role... Rs>
struct RoleTypes<std::variant<Rs...>> {
  using Messages = Concat<typename Rs::Messages...>;
  using Outputs = Concat<typename Rs::Outputs...>;
  using Inputs = Concat<typename Rs::Inputs...>;
  using Questions = Concat<typename Rs::Questions...>;
  using Answers = Concat<MessageList<Refusal>, typename Rs::Answers...>;
  using Options = std::variant<std::shared_ptr<const typename Rs::Options>...>;
  using Spare = std::tuple<typename Rs::Spare...>;
  using Effects = std::tuple<typename Rs::Context::Effects...>;
};
using AllRoles = RoleTypes<AnyRole>;

}  // namespace detail

using RoleMessages = detail::AllRoles::Messages;
using RoleOutputs = detail::AllRoles::Outputs;
using RoleInput = AnyOf<detail::AllRoles::Inputs>;
using Question = AnyOf<detail::AllRoles::Questions>;
using Answer = AnyOf<detail::AllRoles::Answers>;

/// The options of a role. Members of one process may share them.
using AnyRoleOptions = detail::AllRoles::Options;

/// Empty lists, whose memory the next event uses again.
struct SpareEffects {
  detail::AllRoles::Effects role;
  detail::AllRoles::Spare parts;
};

/// Returns the role that takes these options. Requires: they are not null, as those of a
/// default-constructed MemberOptions are.
[[nodiscard]] inline AnyRole make_role(const AnyRoleOptions& options, RoleSetup setup) {
  return std::visit(
      [&]<class Options>(const std::shared_ptr<const Options>& role_options) {
        STARLING_CHECK(role_options != nullptr);
        return AnyRole{std::in_place_type<typename Options::Role>, role_options, std::move(setup)};
      },
      options);
}

}  // namespace starling::core
