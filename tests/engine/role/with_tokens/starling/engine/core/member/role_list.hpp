/// The list of roles with one more line. Programs that look for headers here first have the role
/// Tokens beside the real ones (docs/design/0016-roles.md).
#pragma once

#include <variant>

#include "starling/engine/core/flow/flow.hpp"
#include "starling/engine/core/training/training.hpp"
#include "tests/engine/role/tokens.hpp"

namespace starling::core {

using AnyRole = std::variant<Training, Flow, Tokens>;

}  // namespace starling::core
