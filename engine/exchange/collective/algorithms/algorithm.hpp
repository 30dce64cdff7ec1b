/// The algorithms of collectives, and the grammar that names them. A new algorithm is one file in
/// this folder and one name in the list. Pure functions; thread-safe.
///
///     auto algorithm = parse_algorithm("bcube:k=2").value();
///     Schedule schedule = make_schedule(algorithm, Operation::all_reduce, 16, 0).value();
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "starling/base/alternatives.hpp"
#include "starling/engine/exchange/collective/algorithms/bcube.hpp"
#include "starling/engine/exchange/collective/algorithms/binomial_tree.hpp"
#include "starling/engine/exchange/collective/algorithms/double_tree.hpp"
#include "starling/engine/exchange/collective/algorithms/doubling.hpp"
#include "starling/engine/exchange/collective/algorithms/groups.hpp"
#include "starling/engine/exchange/collective/algorithms/halving.hpp"
#include "starling/engine/exchange/collective/algorithms/packed_trees.hpp"
#include "starling/engine/exchange/collective/algorithms/parts.hpp"
#include "starling/engine/exchange/collective/algorithms/ring.hpp"
#include "starling/engine/exchange/collective/operation.hpp"

namespace starling::collective {

/// An algorithm whose all-reduce is not a reduction followed by the broadcast that mirrors it.
template <class A>
concept WholeAllReduce = requires(const A algorithm, std::size_t members) {
  /// Returns the schedule of the whole all-reduce. Requires: check(members).
  { algorithm.all_reduce(members) } -> std::same_as<Schedule>;
};

/// An algorithm that first sums each chunk at one member.
template <class A>
concept ReduceThenBroadcast = requires(const A algorithm, std::size_t members, Rank root) {
  /// Returns the first half of an all-reduce: each chunk is summed at one member.
  /// with_broadcast() adds the second half. Requires: check(members), root < members.
  { algorithm.reduce(members, root) } -> std::same_as<Schedule>;
};

template <class A>
concept CollectiveAlgorithm = Alternative<A> &&
    (WholeAllReduce<A> || ReduceThenBroadcast<A>)&&requires(const A algorithm,
                                                            std::size_t members) {
  /// An example that the grammar reads.
  { A::form } -> std::convertible_to<std::string_view>;
  /// One line for help texts.
  { A::summary } -> std::convertible_to<std::string_view>;
  /// Refuses numbers of members that the algorithm cannot have.
  { algorithm.check(members) } -> std::same_as<Result<void>>;
};

using Algorithm = std::variant<Ring, BinomialTree, DoubleTree, Doubling, Halving, Parts, Groups,
                               BCube, PackedTrees>;

/// Reads `ring`, `tree`, `double-tree`, `doubling`, `halving`, `parts`, `groups:4`, `bcube:k=2` or
/// `trees:FILE`. The error for an unknown name lists the valid ones. Does not read FILE.
[[nodiscard]] Result<Algorithm> parse_algorithm(std::string_view text);
/// Returns text that parse_algorithm() reads back.
[[nodiscard]] std::string print(const Algorithm& algorithm);

/// Makes the schedule of an operation. Refuses a number of members that is 0, above the bounds
/// below, or one that the algorithm cannot have, and a root that is not a member. Requires: the
/// topology of PackedTrees was read.
[[nodiscard]] Result<Schedule> make_schedule(const Algorithm& algorithm, Operation operation,
                                             std::size_t members, Rank root);

/// The most members of a collective, and of an all-to-all, which has members^2 chunks.
inline constexpr std::size_t members_max = 256;
inline constexpr std::size_t all_to_all_members_max = 64;

}  // namespace starling::collective
