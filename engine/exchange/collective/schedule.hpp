/// A collective operation as data: who sends which chunk to whom in which round. Algorithms
/// (algorithm.hpp) make schedules, check.hpp proves that a schedule is right, cost.hpp says what it
/// costs, and executor.hpp runs it. Plain values; thread-safe to read.
///
/// All members have a vector of equal length, which is cut into chunks. A collective is described
/// by its chunks alone: an all-reduce sums each chunk over all members and gives everyone the sum;
/// in a broadcast one member has the chunk, and everyone gets it (operation.hpp). Source: the pre-
/// and postconditions of SCCL (Cai et al., PPoPP 2021).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace starling::collective {

/// A member's position among the members of a collective, counted from 0 (MPI's rank).
using Rank = std::uint32_t;
/// A chunk's position in the vector, counted from 0.
using ChunkId = std::uint32_t;

struct Chunk {
  /// The part of the vector that the chunk takes. The shares of a schedule sum to 1.
  double share = 1;
  /// The member whose value is the result. nullopt: the result is the sum over all members.
  std::optional<Rank> source = std::nullopt;
  /// The member that gets the result. nullopt: all members get it.
  std::optional<Rank> destination = std::nullopt;

  bool operator==(const Chunk&) const = default;
};

/// How a receiver changes its chunk by the one that arrives.
enum class ReceiveAction : std::uint8_t { copy, add };

/// One chunk, as its sender has it before the round, goes to one receiver.
struct Move {
  Rank from;
  Rank to;
  ChunkId chunk;
  ReceiveAction action;
  /// The port that the message leaves and enters by, if members have several.
  std::uint8_t port = 0;

  bool operator==(const Move&) const = default;
};

/// The moves of one round. Each reads the values that its sender had before the round. Several of
/// them may add to one chunk of one member; they do so in the order of this list.
using Round = std::vector<Move>;

struct Schedule {
  std::size_t members = 1;
  /// The number of network ports of each member.
  std::size_t ports = 1;
  std::vector<Chunk> chunks{Chunk{}};
  std::vector<Round> rounds{};

  bool operator==(const Schedule&) const = default;
};

/// Returns the `n` chunks, of equal shares, of an all-reduce.
[[nodiscard]] std::vector<Chunk> equal_chunks(std::size_t n);

/// Returns an all-reduce: `reduce`, which sums each chunk at one member along some tree, and then
/// the broadcast that mirrors it, in which the same moves in reverse order and direction copy the
/// sum. (Chan et al. 2007, "Collective communication: theory, practice, and experience",
/// section 4: reduce and broadcast, and reduce-scatter and all-gather, are duals.)
[[nodiscard]] Schedule with_broadcast(Schedule reduce);

/// Cuts each chunk into `slices` equal chunks, each of which makes the moves of the chunk one round
/// after the one before it, so that all links of a tree are busy at the same time. Requires:
/// slices >= 1.
[[nodiscard]] Schedule pipelined(const Schedule& schedule, std::size_t slices);

/// Returns where the chunks of a vector of `size` elements begin, and at last `size`. The chunks
/// differ from their shares by less than one element.
[[nodiscard]] std::vector<std::size_t> chunk_bounds(std::span<const Chunk> chunks,
                                                    std::size_t size);

/// Returns where the slices begin, and at last `size`, if each chunk is cut into `slices` equal
/// slices. The slices of the first chunk come first. Requires: slices >= 1.
[[nodiscard]] std::vector<std::size_t> slice_bounds(std::span<const Chunk> chunks, std::size_t size,
                                                    std::uint32_t slices);

/// A move with the number of its round, counted from 0.
struct ScheduledMove {
  std::size_t round;
  Move move;
};
/// Returns for each chunk the moves that carry it, in the order of the schedule.
[[nodiscard]] std::vector<std::vector<ScheduledMove>> moves_by_chunk(const Schedule& schedule);

/// Returns the number of all moves.
[[nodiscard]] std::size_t count_moves(const Schedule& schedule);

/// Prints a move: "2 -> 5 adds chunk 1".
[[nodiscard]] std::string print(const Move& move);

}  // namespace starling::collective
