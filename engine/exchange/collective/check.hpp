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
/// - in the end, a destination's value of a chunk is not the sum over the chunk's sources.
/// Otherwise each destination ends with the sum over its chunk's sources, each counted exactly
/// once, however long each message takes. This requires that each member executes the moves of a
/// chunk in the order of their rounds and, in each round, sends the chunk before it receives it.
[[nodiscard]] Result<void> check(const Schedule& schedule);

}  // namespace starling::collective
