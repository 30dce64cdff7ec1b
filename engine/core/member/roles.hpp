/// The messages, outputs, inputs, questions and answers of all roles, derived from the list of
/// roles (role_list.hpp).
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <variant>

#include "starling/engine/core/member/role_list.hpp"
#include "starling/engine/core/role/role.hpp"
#include "starling/engine/core/type_list.hpp"

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
  using Answers = Concat<TypeList<Refusal>, typename Rs::Answers...>;
  using Options = std::variant<std::shared_ptr<const typename Rs::Options>...>;
  using Scratch = std::tuple<typename Rs::Scratch...>;
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

/// Empty lists, whose memory the next event uses again: one list of effects for each role, and the
/// lists of R::Scratch of each role R.
struct EffectScratch {
  detail::AllRoles::Effects effects;
  detail::AllRoles::Scratch roles;
};

/// Returns the role that takes these options. Requires: the options are not null. (Those of a
/// default-constructed MemberOptions are null.)
[[nodiscard]] AnyRole make_role(const AnyRoleOptions& options, RoleSetup setup);

}  // namespace starling::core
