/// What is checked of a letter before any core hears it: nobody speaks for another, and nothing
/// names a member or a range that there cannot be. Pure functions; any thread.
#pragma once

#include <optional>

#include "starling/engine/core/letter.hpp"

namespace starling::core {

/// Who says something, and to whom.
struct Door {
  /// The configuration of who is told. Requires: it names the sender.
  const Configuration& now;
  WorkerId from;
  /// The member that keeps the steps, in central mode.
  std::optional<WorkerId> coordinator;
  /// Members are numbered below this.
  WorkerId members_max;
};

/// True where a member may say this.
[[nodiscard]] bool may_say(const Door& door, const Letter& letter);

/// True where `next` may be a configuration: members ascend below the maximum, and council and
/// owners are among them.
[[nodiscard]] bool is_sound(const ConfigurationPtr& next, WorkerId members_max);

}  // namespace starling::core
