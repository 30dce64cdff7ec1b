/// Checks messages before any core receives them. Refuses messages that name a sender other than
/// the real one, that name members or ranges that cannot exist, or whose tensors do not fit their
/// range. Pure functions; thread-safe.
#pragma once

#include "starling/engine/core/member/peer_message.hpp"

namespace starling::core {

/// A configuration of a later epoch is invalid. No job reaches this epoch.
inline constexpr Epoch epoch_max = Epoch{1} << 60U;
/// A configuration may be at most this many epochs later than the known one. Epochs rise one by
/// one, so only a faulty sender names an even later epoch; if receivers adopted such epochs, the
/// sender could use up all of them.
inline constexpr Epoch epoch_jump_max = Epoch{1} << 20U;

/// Returns true if the sender may send this message to a member with this role.
[[nodiscard]] bool is_valid(const MessageScope& scope, const AnyRole& role,
                            const PeerMessage& peer_message);

/// Returns true if `next` is not null and valid: its members ascend and are below `members_max`,
/// its council is not empty, the council, the owners and the coordinator are among the members, and
/// its epoch is at most epoch_max.
[[nodiscard]] bool is_valid(const ConfigurationPtr& next, MemberId members_max);

/// Returns true if `next` is valid (see is_valid()) and can belong to the job of `now`: it has as
/// many ranges, has a coordinator exactly if `now` has one, and is at most epoch_jump_max epochs
/// later. It may be older than `now`.
[[nodiscard]] bool may_follow(const Configuration& now, const ConfigurationPtr& next,
                              MemberId members_max);

}  // namespace starling::core
