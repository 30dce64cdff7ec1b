/// The closed set of roles. To add a role, write a folder and add its class here: the messages
/// between members, the codec, the validation and the questions follow.
#pragma once

#include <variant>

#include "starling/engine/core/flow/flow.hpp"
#include "starling/engine/core/training/training.hpp"

namespace starling::core {

/// The role of a member.
using AnyRole = std::variant<Training, Flow>;

}  // namespace starling::core
