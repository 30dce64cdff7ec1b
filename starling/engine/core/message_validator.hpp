/// Checks messages before any core receives them: no member speaks for another, and no message
/// names a member or a range that cannot exist, or brings tensors that do not fit their range. Pure
/// functions; any thread.
#pragma once

#include "starling/engine/core/peer_message.hpp"

namespace starling::core {

/// No job has had so many configurations.
inline constexpr Epoch epoch_max = Epoch{1} << 60U;
/// A configuration may be so many epochs later than the one that is known. Each is decided by a
/// majority, so whoever says more makes them up, and could use all epochs up.
inline constexpr Epoch epoch_jump_max = Epoch{1} << 20U;

/// Validates the messages from one member to another.
struct MessageValidator {
  /// The receiver's configuration. Requires: it names the sender.
  const Configuration& now;
  MemberId from;
  /// Members are numbered below this.
  MemberId members_max;
  /// Of the job's parameters.
  const Layout& layout;
  std::size_t element_bytes;

  /// Returns true if the sender may send this message.
  [[nodiscard]] bool is_valid(const PeerMessage& peer_message) const;
};

/// True where `next` may be a configuration: members ascend below the maximum, council, owners and
/// coordinator are among them, and its epoch is one that a job can have.
[[nodiscard]] bool is_sound(const ConfigurationPtr& next, MemberId members_max);

/// The same, and of the job of `now`: of as many ranges, with a coordinator where that has one, and
/// not too many epochs later.
[[nodiscard]] bool may_follow(const Configuration& now, const ConfigurationPtr& next,
                              MemberId members_max);

}  // namespace starling::core
