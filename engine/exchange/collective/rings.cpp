#include "starling/engine/exchange/collective/rings.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "starling/base/check.hpp"

namespace starling::collective {
namespace {

using LinksOfRing = std::vector<std::pair<Rank, Rank>>;

/// Returns all directed Hamiltonian cycles of the topology, each as a list of its links.
std::vector<LinksOfRing> rings_of(const Topology& topology) {
  std::vector<LinksOfRing> rings;
  std::vector<Rank> order(topology.members);
  std::iota(order.begin(), order.end(), Rank{0});
  do {
    LinksOfRing ring;
    for (std::size_t i = 0; i < order.size(); ++i)
      ring.emplace_back(order[i], order[(i + 1) % order.size()]);
    const auto is_link = [&](const auto& link) {
      return topology.lanes(link.first, link.second) > 0;
    };
    if (std::ranges::all_of(ring, is_link)) rings.push_back(std::move(ring));
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return rings;
}

/// Packs rings into the lanes of a topology.
class RingPacker {
 public:
  explicit RingPacker(const Topology& topology) : rings_(rings_of(topology)) {
    for (const Link& link : topology.links) free_[{link.from, link.to}] = link.lanes;
  }

  /// Returns the largest number of rings, drawn with repetition, that fit into the free lanes at
  /// once. Draws only the rings at `first` and after it.
  std::size_t most(std::size_t first = 0) {
    std::size_t most_taken = 0;
    for (std::size_t r = first; r < rings_.size(); ++r) {
      const LinksOfRing& ring = rings_[r];
      if (!std::ranges::all_of(ring, [&](const auto& link) { return free_[link] > 0; })) continue;
      for (const auto& link : ring) --free_[link];
      most_taken = std::max(most_taken, 1 + most(r));
      for (const auto& link : ring) ++free_[link];
    }
    return most_taken;
  }

 private:
  std::vector<LinksOfRing> rings_;
  std::map<std::pair<Rank, Rank>, std::uint32_t> free_;
};

}  // namespace

std::size_t most_rings(const Topology& topology) {
  STARLING_CHECK(topology.members >= 2 && topology.members <= 8);
  return RingPacker{topology}.most();
}

}  // namespace starling::collective
