#include "starling/engine/exchange/collective/packing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "starling/base/check.hpp"

namespace starling::collective {
namespace {

/// An edge of a graph in which some cycles are contracted to vertices.
struct Edge {
  std::size_t from;
  std::size_t to;
  double length;
};

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// Returns the shortest edge into each vertex but the root; `none` for the root.
std::vector<std::size_t> shortest_into(std::size_t vertices, std::size_t root,
                                       const std::vector<Edge>& edges) {
  std::vector<std::size_t> best(vertices, none);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const Edge& edge = edges[e];
    if (edge.to == root || edge.from == edge.to) continue;
    if (best[edge.to] == none || edge.length < edges[best[edge.to]].length) best[edge.to] = e;
  }
  return best;
}

/// Contracts each cycle of the edges `best` to one vertex. Returns the new number of each vertex,
/// and sets `count` to the number of vertices that are left.
std::vector<std::size_t> contract(const std::vector<std::size_t>& best,
                                  const std::vector<Edge>& edges, std::size_t& count) {
  std::vector<std::size_t> number(best.size(), none);
  std::vector<std::size_t> seen_from(best.size(), none);
  count = 0;
  for (std::size_t start = 0; start < best.size(); ++start) {
    std::size_t v = start;
    while (best[v] != none && seen_from[v] == none && number[v] == none) {
      seen_from[v] = start;
      v = edges[best[v]].from;
    }
    if (best[v] == none || seen_from[v] != start || number[v] != none) continue;
    do {  // v is on a new cycle
      number[v] = count;
      v = edges[best[v]].from;
    } while (number[v] == none);
    ++count;
  }
  for (std::size_t& n : number)
    if (n == none) n = count++;
  return number;
}

/// Returns the edges of the shortest spanning tree away from the root. Requires: such a tree
/// exists.
std::vector<std::size_t> shortest_edges(std::size_t vertices, std::size_t root,
                                        const std::vector<Edge>& edges) {
  std::vector<std::size_t> best = shortest_into(vertices, root, edges);
  std::size_t count = 0;
  const auto number = contract(best, edges, count);
  if (count < vertices) {
    // An edge into a cycle takes the place of the cycle's edge to the same vertex.
    std::vector<Edge> shorter;
    for (const Edge& edge : edges)
      shorter.push_back(
          {number[edge.from], number[edge.to],
           best[edge.to] == none ? edge.length : edge.length - edges[best[edge.to]].length});
    for (const std::size_t e : shortest_edges(count, number[root], shorter)) best[edges[e].to] = e;
  }
  std::erase(best, none);
  return best;
}

/// Chooses trees so that no link carries more of them than it has lanes.
class TreeChooser {
 public:
  TreeChooser(const Topology& topology, Rank root, const std::vector<Tree>& candidates)
      : topology_(topology), root_(root), candidates_(candidates) {
    for (const Link& link : topology.links) free_.push_back(link.lanes);
    for (const Tree& tree : candidates) {
      auto& links = links_.emplace_back();
      for (std::size_t e = 0; e < topology.links.size(); ++e)
        if (is_in(tree, topology.links[e])) links.push_back(e);
    }
  }

  static bool is_in(const Tree& tree, const Link& link) {
    return tree.parents[link.to] == link.from && link.to != link.from;
  }

  /// Returns how often each candidate is chosen, `wanted` times in all; nullopt if the search finds
  /// no choice.
  std::optional<std::vector<std::size_t>> choose(std::size_t wanted) {
    chosen_.assign(candidates_.size(), 0);
    steps_ = 0;
    if (!search(wanted)) return std::nullopt;
    return chosen_;
  }

 private:
  /// Bounds the time of the search.
  static constexpr std::size_t steps_max = 20'000;

  bool fits(std::size_t tree) const {
    return std::ranges::all_of(links_[tree], [&](std::size_t e) { return free_[e] > 0; });
  }
  /// Takes a free lane of each link of the tree or, if `back`, gives these lanes back.
  void take(std::size_t tree, bool back) {
    for (const std::size_t e : links_[tree]) free_[e] += back ? 1U : -1U;
    chosen_[tree] += back ? -1UL : 1UL;
  }

  /// Returns the candidates to try next; nullopt if too few free lanes lead to some member. Each
  /// tree enters each member once, so if only as many free lanes lead to a member as trees are
  /// wanted, the trees must take all these lanes. In this case, returns the candidates that use one
  /// of these links, namely the link that the fewest candidates use. If there is no such link,
  /// returns all candidates that fit.
  std::optional<std::vector<std::size_t>> branches(std::size_t wanted) const {
    std::vector<std::size_t> lanes_into(topology_.members, 0);
    for (std::size_t e = 0; e < free_.size(); ++e) lanes_into[topology_.links[e].to] += free_[e];
    for (Rank i = 0; i < topology_.members; ++i)
      if (i != root_ && lanes_into[i] < wanted) return std::nullopt;
    std::vector<std::vector<std::size_t>> over(free_.size());
    std::vector<std::size_t> all;
    for (std::size_t t = 0; t < links_.size(); ++t) {
      if (!fits(t)) continue;
      all.push_back(t);
      for (const std::size_t e : links_[t]) over[e].push_back(t);
    }
    const std::vector<std::size_t>* fewest = &all;
    for (std::size_t e = 0; e < free_.size(); ++e) {
      const Rank to = topology_.links[e].to;
      if (free_[e] > 0 && to != root_ && lanes_into[to] == wanted &&
          over[e].size() < fewest->size())
        fewest = &over[e];
    }
    return *fewest;
  }

  bool search(std::size_t wanted) {
    if (wanted == 0) return true;
    const auto trees = branches(wanted);
    if (!trees) return false;
    for (const std::size_t tree : *trees) {
      if (++steps_ > steps_max) return false;
      take(tree, false);
      if (search(wanted - 1)) return true;
      take(tree, true);
    }
    return false;
  }

  const Topology& topology_;
  Rank root_;
  const std::vector<Tree>& candidates_;
  /// By candidate: its links.
  std::vector<std::vector<std::size_t>> links_;
  /// By link: the lanes that no chosen tree uses.
  std::vector<std::uint32_t> free_;
  std::vector<std::size_t> chosen_;
  std::size_t steps_ = 0;
};

}  // namespace

Tree shortest_tree(const Topology& topology, Rank root, const std::vector<double>& lengths) {
  std::vector<Edge> edges;
  for (std::size_t e = 0; e < topology.links.size(); ++e)
    edges.push_back({topology.links[e].from, topology.links[e].to, lengths[e]});
  Tree tree{std::vector<Rank>(topology.members, root), 1};
  for (const std::size_t e : shortest_edges(topology.members, root, edges))
    tree.parents[topology.links[e].to] = topology.links[e].from;
  return tree;
}

Packing pack_by_weights(const Topology& topology, Rank root, double epsilon) {
  STARLING_CHECK(root < topology.members && epsilon > 0 && epsilon < 0.5);
  if (topology.members == 1) return {{Tree{{root}, 1}}, 0};
  const auto m = static_cast<double>(topology.links.size());
  const double delta = (1 + epsilon) * std::pow((1 + epsilon) * m, -1 / epsilon);
  std::vector<double> lengths;
  for (const Link& link : topology.links) lengths.push_back(delta / link.lanes);
  std::vector<double> loads(topology.links.size(), 0);
  std::map<std::vector<Rank>, double> taken;
  double total = 0;
  // Each round multiplies the length of some link by 1 + epsilon, so there are at most
  // m log(1 / delta) / log(1 + epsilon) rounds.
  for (;;) {
    const Tree tree = shortest_tree(topology, root, lengths);
    double length = 0;
    double amount = std::numeric_limits<double>::infinity();
    for (std::size_t e = 0; e < loads.size(); ++e) {
      if (!TreeChooser::is_in(tree, topology.links[e])) continue;
      length += lengths[e];
      amount = std::min<double>(amount, topology.links[e].lanes);
    }
    if (length >= 1) break;
    taken[tree.parents] += amount;
    total += amount;
    for (std::size_t e = 0; e < loads.size(); ++e) {
      if (!TreeChooser::is_in(tree, topology.links[e])) continue;
      loads[e] += amount;
      lengths[e] *= 1 + epsilon * amount / topology.links[e].lanes;
    }
  }
  double congestion = 0;
  for (std::size_t e = 0; e < loads.size(); ++e)
    congestion = std::max(congestion, loads[e] / topology.links[e].lanes);
  Packing packing{{}, total / congestion};
  for (const auto& [parents, amount] : taken) packing.trees.push_back({parents, amount / total});
  std::ranges::stable_sort(packing.trees, std::ranges::greater{}, &Tree::share);
  return packing;
}

Packing pack_trees(const Topology& topology, Rank root) {
  Packing many = pack_by_weights(topology, root);
  if (topology.members == 1) return many;
  TreeChooser chooser{topology, root, many.trees};
  const auto highest = static_cast<std::size_t>(std::ceil(many.rate));
  for (std::size_t wanted = highest; static_cast<double>(wanted) >= 0.95 * many.rate && wanted > 0;
       --wanted) {
    const auto chosen = chooser.choose(wanted);
    if (!chosen) continue;
    Packing few{{}, static_cast<double>(wanted)};
    for (std::size_t t = 0; t < many.trees.size(); ++t)
      if ((*chosen)[t] > 0)
        few.trees.push_back({many.trees[t].parents,
                             static_cast<double>((*chosen)[t]) / static_cast<double>(wanted)});
    return few;
  }
  return many;
}

}  // namespace starling::collective
