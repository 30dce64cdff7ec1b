/// How the questions of actors that are not members go from member to member: over the link of a
/// member on the requester's node. Plain values.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "starling/engine/core/member/roles.hpp"

namespace starling::core {

/// From member to member: a question, with a number that the asking member chooses.
struct MemberQuestion {
  std::uint64_t number = 0;
  Question question;

  static constexpr std::string_view name = "member-question";
  static constexpr auto fields(auto& m) { return std::tie(m.number, m.question); }
};
/// The answer to the MemberQuestion with this number.
struct MemberAnswer {
  std::uint64_t number = 0;
  Answer answer;

  static constexpr std::string_view name = "member-answer";
  static constexpr auto fields(auto& m) { return std::tie(m.number, m.answer); }
};

}  // namespace starling::core
