#include "starling/engine/exchange/gossip/graph.hpp"

#include <algorithm>
#include <bit>

namespace starling::core {

std::optional<GossipGraph> parse_gossip_graph(std::string_view name) {
  const auto found = std::ranges::find(gossip_graphs, name);
  if (found == gossip_graphs.end()) return std::nullopt;
  return static_cast<GossipGraph>(found - gossip_graphs.begin());
}

std::size_t gossip_target(GossipGraph graph, std::size_t self, std::size_t workers,
                          std::uint64_t step, Random& random) {
  switch (graph) {
    case GossipGraph::exponential: {
      const auto hops = static_cast<std::uint64_t>(std::bit_width(workers - 1));
      return (self + (std::size_t{1} << (step % hops))) % workers;
    }
    case GossipGraph::ring:
      return (self + 1) % workers;
    case GossipGraph::random:
      break;
  }
  const std::size_t other = random.below(workers - 1);
  return other < self ? other : other + 1;
}

}  // namespace starling::core
