/// Reduction along given trees, on which several algorithms rest. Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "starling/engine/exchange/collective/schedule.hpp"

namespace starling::collective {

/// A spanning tree of all members, and the share of the vector that it carries.
struct Tree {
  /// By member: its parent. The root is its own parent.
  std::vector<Rank> parents;
  double share = 1;

  bool operator==(const Tree&) const = default;
};

/// Returns for each member the number of edges from it to the leaf farthest below it.
[[nodiscard]] inline std::vector<std::size_t> heights(const Tree& tree) {
  std::vector<std::size_t> heights(tree.parents.size(), 0);
  for (Rank leaf = 0; leaf < tree.parents.size(); ++leaf) {
    std::size_t below = 0;
    for (Rank i = leaf; tree.parents[i] != i; i = tree.parents[i]) {
      std::size_t& height = heights[tree.parents[i]];
      height = std::max(height, ++below);
    }
  }
  return heights;
}

/// Returns the reduction in which chunk t is summed at the root of tree t: a member sends to its
/// parent as soon as it has received from all its children, each edge taking one round.
/// Requires: one tree at least, all over the same members.
[[nodiscard]] inline Schedule reduce_over(const std::vector<Tree>& trees) {
  Schedule schedule{
      .members = trees.front().parents.size(), .ports = 1, .chunks = {}, .rounds = {}};
  for (const Tree& tree : trees) {
    const auto chunk = static_cast<ChunkId>(schedule.chunks.size());
    schedule.chunks.push_back({.share = tree.share});
    const auto height = heights(tree);
    const std::size_t rounds = *std::ranges::max_element(height);
    if (schedule.rounds.size() < rounds) schedule.rounds.resize(rounds);
    for (Rank i = 0; i < tree.parents.size(); ++i)
      if (tree.parents[i] != i)
        schedule.rounds[height[i]].push_back({i, tree.parents[i], chunk, ReceiveAction::add});
  }
  return schedule;
}

}  // namespace starling::collective
