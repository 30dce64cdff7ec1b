/// One member's part of a schedule. Plain values; thread-safe to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// Send the chunk to `peer`, or receive it from `peer`.
struct Instruction {
  enum class Kind : std::uint8_t { send, receive };

  Kind kind;
  ReceiveAction action;
  Rank peer;
  /// The round in the schedule; names the message.
  std::uint32_t round;

  bool operator==(const Instruction&) const = default;
};

/// The instructions of a member. The instructions for one chunk are executed in order; chunks do
/// not depend on each other.
struct Program {
  Rank self = 0;
  std::vector<Chunk> chunks;
  /// By chunk.
  std::vector<std::vector<Instruction>> instructions;
  /// The members from which this one receives, and to which it sends, ascending.
  std::vector<Rank> senders;
  std::vector<Rank> receivers;
  /// The receivers that contribute nothing to this member's results. Only their acknowledgement of
  /// the last slice shows this member that they have begun.
  std::vector<Rank> last_acks_from;
  /// The senders to whose results this member contributes nothing. This member acknowledges the
  /// last slice to them.
  std::vector<Rank> last_acks_to;
};

/// Returns the instructions of a member: those of earlier rounds first. In a round, a member
/// sends a chunk before it receives it. Requires: the schedule passes check(), self is a member.
[[nodiscard]] Program make_program(const Schedule& schedule, Rank self);

}  // namespace starling::collective
