/// The collective operations, and how an all-reduce becomes each of them. Pure functions;
/// thread-safe.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

enum class Operation {
  /// Everyone gets the sum.
  all_reduce,
  /// The root gets the sum.
  reduce,
  /// Everyone gets the root's vector.
  broadcast,
  /// The root gets part i of member i's vector, for each i.
  gather,
  /// Member i gets part i of the root's vector.
  scatter,
  /// Member i gets part i of the sum.
  reduce_scatter,
  /// Everyone gets part i of member i's vector, for each i.
  all_gather,
  /// Member j gets part (i, j) of member i's vector, for each i.
  all_to_all,
};

/// Returns all operations, in the order of the enumeration.
[[nodiscard]] const std::vector<Operation>& operations();
/// Returns the name, such as "all-reduce".
[[nodiscard]] std::string_view name(Operation operation);
/// Reads a name. The error lists the valid ones.
[[nodiscard]] Result<Operation> parse_operation(std::string_view text);
/// Returns true if one member, the root, has or gets the whole vector.
[[nodiscard]] bool has_root(Operation operation);

/// Returns the schedule of an operation over the routes of an all-reduce: the moves that carry
/// something that a destination lacks, and no others. For example, the broadcast over a ring is the
/// pipelined chain; that over recursive halving is a scatter and an all-gather over a hypercube
/// (van de Geijn's broadcast); the gather over a tree sends the parts of a subtree together.
///
/// In an operation with parts, the number of chunks of the all-reduce decides the routes. If it is
/// a multiple of `members`, chunk c is summed at member c mod members, and part i takes the routes
/// of the chunks c with c mod members = i. Otherwise part i takes the route of chunk i mod chunks.
/// In an all-to-all, part (i, j) takes the routes of j.
///
/// Requires: all_reduce passes check(), root < all_reduce.members.
[[nodiscard]] Schedule specialised(const Schedule& all_reduce, Operation operation, Rank root);

}  // namespace starling::collective
