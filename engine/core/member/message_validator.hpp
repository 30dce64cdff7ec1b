/// Checks messages before any core receives them: no member sends in the name of another, and no
/// message names a member or a range that cannot exist, or brings tensors that do not fit their
/// range. Pure functions; any thread.
#pragma once

#include "starling/engine/core/member/peer_message.hpp"

namespace starling::core {

/// No job has this many configurations.
inline constexpr Epoch epoch_max = Epoch{1} << 60U;
/// A configuration may be at most this many epochs later than the known one. A majority decides on
/// each epoch, so a sender that claims more of them lies, and could use up all epochs.
inline constexpr Epoch epoch_jump_max = Epoch{1} << 20U;

/// Validates the messages from one member to another.
struct MessageValidator {
  /// The receiver's configuration. Requires: it names the sender.
  const Configuration& now;
  MemberId from;
  /// Members are numbered below this.
  MemberId members_max;
  /// The layout of the job's parameters.
  const Layout& layout;
  std::size_t element_bytes;

  /// Returns true if the sender may send this message.
  [[nodiscard]] bool is_valid(const PeerMessage& peer_message) const;
};

/// Returns true if `next` may be a configuration: members ascend below the maximum, council, owners
/// and coordinator are among them, and its epoch is one that a job can have.
[[nodiscard]] bool is_sound(const ConfigurationPtr& next, MemberId members_max);

/// Returns true if `next` is sound and can belong to the job of `now`: it has as many ranges, has a
/// coordinator exactly if `now` has one, and is at most epoch_jump_max epochs later.
[[nodiscard]] bool may_follow(const Configuration& now, const ConfigurationPtr& next,
                              MemberId members_max);

}  // namespace starling::core
