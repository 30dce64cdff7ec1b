/// Proves that a schedule computes what its chunks say. Pure functions; thread-safe.
#pragma once

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// Follows through all rounds which members' contributions each member's value of each chunk holds.
/// Returns an Error, which names the round, the move, the chunk and the members, if
/// - a move names a member, a chunk or a port that does not exist, or the same member twice;
/// - a move reads a value that its sender does not have, or adds to one that its receiver lacks;
/// - a copy writes a chunk of a member that another move of the round writes too;
/// - an addition counts a contribution twice;
/// - a destination's chunk lacks a contribution in the end, or has one that is not its sources'.
/// If none of this is so, each destination ends with the sum of its chunk's sources, each exactly
/// once, however long each message takes, provided that each member executes the moves of a chunk
/// in the order of their rounds, and sends before it receives in each of them.
[[nodiscard]] Result<void> check(const Schedule& schedule);

}  // namespace starling::collective
