/// Packs spanning trees into a topology, as Blink does (Wang et al. 2020, "Blink: Fast and Generic
/// Collectives for Distributed ML", MLSys, arXiv 1910.04940, section 3). Pure functions;
/// thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "starling/engine/exchange/collective/topology.hpp"
#include "starling/engine/exchange/collective/tree.hpp"

namespace starling::collective {

struct Packing {
  /// Trees whose links lead from each parent to its children. Their shares sum to 1.
  std::vector<Tree> trees;
  /// How fast the root sends over all trees together, in lanes.
  double rate = 0;
};

/// Packs many trees by multiplicative weights: takes the tree of the least length again and again,
/// and makes its links longer. Garg and Könemann 2007, "Faster and simpler algorithms for
/// multicommodity flow and other fractional packing problems": the rate is at least (1 - 2 epsilon)
/// of the largest possible one, which is the least number of lanes into any set of members without
/// the root (Edmonds 1973, "Edge-disjoint branchings").
/// Requires: root < topology.members, 0 < epsilon < 1/2.
[[nodiscard]] Packing pack_by_weights(const Topology& topology, Rank root, double epsilon = 0.05);

/// Packs few trees: chooses some trees of pack_by_weights(), each with a whole number of lanes, and
/// as many lanes in all as the rate allows. If no choice comes within 5 % of the rate, returns all
/// trees of pack_by_weights().
[[nodiscard]] Packing pack_trees(const Topology& topology, Rank root);

/// Returns the spanning tree whose links lead away from the root and have the least sum of lengths.
/// `lengths` has one length for each link of the topology (Chu and Liu 1965, Edmonds 1967).
[[nodiscard]] Tree shortest_tree(const Topology& topology, Rank root,
                                 const std::vector<double>& lengths);

}  // namespace starling::collective
