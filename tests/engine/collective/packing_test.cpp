/// Trees that are packed into topologies, and Blink's rates.
#include "starling/engine/exchange/collective/packing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>

#include "starling/engine/exchange/collective/cost.hpp"
#include "starling/engine/exchange/collective/rings.hpp"
#include "tests/engine/collective/schedules.hpp"

namespace starling::collective {
namespace {

/// Returns the largest possible rate from the root (Edmonds 1973): the least number of lanes into a
/// set of members without it.
double best_rate(const Topology& topology, Rank root) {
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t set = 1; set < (1U << topology.members); ++set) {
    if ((set >> root & 1U) != 0) continue;
    std::uint32_t into = 0;
    for (const Link& link : topology.links)
      if ((set >> link.from & 1U) == 0 && (set >> link.to & 1U) != 0) into += link.lanes;
    least = std::min(least, into);
  }
  return least;
}

void expect_feasible(const Packing& packing, const Topology& topology, Rank root) {
  double shares = 0;
  std::map<std::pair<Rank, Rank>, double> loads;
  for (const Tree& tree : packing.trees) {
    shares += tree.share;
    EXPECT_EQ(tree.parents[root], root);
    for (Rank i = 0; i < topology.members; ++i) {
      if (i != root) loads[{tree.parents[i], i}] += tree.share * packing.rate;
      Rank up = i;
      for (std::size_t steps = 0; steps < topology.members; ++steps) up = tree.parents[up];
      EXPECT_EQ(up, root) << "member " << i << " is not below the root";
    }
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  for (const auto& [link, load] : loads)
    EXPECT_LE(load, topology.lanes(link.first, link.second) * (1 + 1e-9));
}

TEST(ShortestTree, IsTheShortestOfAllTrees) {
  const Topology four = topology("0 1\n0 2\n0 3\n1 2\n1 3\n2 3\n");
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<double> lengths;
    for (std::size_t e = 0; e < four.links.size(); ++e)
      lengths.push_back(static_cast<double>((seed * (e + 3) * 7919 + e * e * 104729) % 97));
    const auto length_of = [&](const Tree& tree) {
      double sum = 0;
      for (std::size_t e = 0; e < four.links.size(); ++e)
        if (four.links[e].to != 0 && tree.parents[four.links[e].to] == four.links[e].from)
          sum += lengths[e];
      return sum;
    };
    double least = std::numeric_limits<double>::infinity();
    for (Rank a = 0; a < 4; ++a)
      for (Rank b = 0; b < 4; ++b)
        for (Rank c = 0; c < 4; ++c) {
          const Tree tree{{0, a, b, c}, 1};
          bool is_tree = true;
          for (Rank i = 1; i < 4; ++i) {
            const Rank up = tree.parents[tree.parents[tree.parents[i]]];
            is_tree = is_tree && up == 0 && tree.parents[i] != i;
          }
          if (is_tree) least = std::min(least, length_of(tree));
        }
    EXPECT_EQ(length_of(shortest_tree(four, 0, lengths)), least) << "seed " << seed;
  }
}

// Blink, section 3: on a DGX-1V, multiplicative weights find nearly the six lanes that each device
// has, with many trees; six trees are enough.
TEST(Packing, OfADgx1vHasSixTreesAtSixLanes) {
  const Topology dgx = topology(std::string{dgx_1v});
  std::size_t most_trees = 0;
  for (Rank root = 0; root < 8; ++root) {
    ASSERT_EQ(best_rate(dgx, root), 6);
    const Packing many = pack_by_weights(dgx, root);
    expect_feasible(many, dgx, root);
    EXPECT_GE(many.rate, 5.7);
    const Packing few = pack_trees(dgx, root);
    expect_feasible(few, dgx, root);
    EXPECT_GE(few.rate, 5.98);
    EXPECT_LE(few.trees.size(), 6U);
    most_trees = std::max(most_trees, many.trees.size());
  }
  EXPECT_GT(most_trees, 6U);
}

TEST(Packing, ReachesTheBestRateOnAllPartsOfADgx1v) {
  const Topology dgx = topology(std::string{dgx_1v});
  for (std::uint32_t set = 1; set < 256; ++set) {
    std::vector<Rank> kept;
    for (Rank i = 0; i < 8; ++i)
      if ((set >> i & 1U) != 0) kept.push_back(i);
    const Topology part = part_of(dgx, kept);
    const double best = kept.size() < 2 ? 0 : best_rate(part, 0);
    if (best == 0) continue;  // not connected
    const Packing few = pack_trees(part, 0);
    expect_feasible(few, part, 0);
    EXPECT_GE(few.rate, 0.95 * best) << set;
    EXPECT_LE(few.trees.size(), 6U) << set;
  }
}

// Blink, section 2: if a job has some of the devices only, rings leave lanes unused, or there is no
// ring at all; with all eight devices, rings use all lanes.
TEST(Packing, GainsOverRingsOnPartsOfADgx1vOnly) {
  const Topology dgx = topology(std::string{dgx_1v});
  EXPECT_EQ(most_rings(dgx), 6U);
  EXPECT_EQ(pack_trees(dgx, 0).rate, 6);
  const Topology six = part_of(dgx, std::array<Rank, 6>{0, 1, 2, 3, 4, 5});
  EXPECT_EQ(most_rings(six), 2U);
  EXPECT_EQ(pack_trees(six, 0).rate, 3);  // 1.5 times two rings, 3 times one ring
  const Topology five = part_of(dgx, std::array<Rank, 5>{0, 1, 2, 3, 4});
  EXPECT_EQ(most_rings(five), 0U);
  EXPECT_EQ(pack_trees(five, 0).rate, 2);
}

TEST(Packing, BroadcastsAtItsRateIfPipelined) {
  const auto dgx = std::make_shared<const Topology>(topology(std::string{dgx_1v}));
  const Network nvlink{.latency_s = 1e-9, .bytes_per_second = 20e9, .topology = dgx};
  const Schedule broadcast = make(PackedTrees{"dgx", dgx}, 8, Operation::broadcast, 0);
  const Cost costs = cost(broadcast, 1e9, nvlink).value();
  EXPECT_NEAR(costs.seconds, 1e9 / (6 * 20e9), 0.02 * 1e9 / (6 * 20e9));
}

TEST(Packing, OfIrregularTopologies) {
  for (std::size_t n = 2; n <= 12; ++n) {
    const Topology irregular = chords(n);
    for (const Rank root : {Rank{0}, static_cast<Rank>(n - 1)}) {
      const Packing few = pack_trees(irregular, root);
      expect_feasible(few, irregular, root);
      EXPECT_GE(few.rate, 0.9 * best_rate(irregular, root)) << n;
    }
  }
}

TEST(Topologies, AreReadWithComments) {
  const Topology read = topology("# two links\n0 1 2 # double\n\n 2\t1\n");
  EXPECT_EQ(read.members, 3U);
  EXPECT_EQ(read.links, (std::vector<Link>{{0, 1, 2}, {1, 0, 2}, {1, 2, 1}, {2, 1, 1}}));
  EXPECT_EQ(read.lanes(0, 1), 2U);
  EXPECT_EQ(read.lanes(0, 2), 0U);
}

TEST(Topologies, WithMistakesAreRefusedByLine) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "t: no links; valid: A B [LANES]"},
      {"0 1\n0\n", "t:2: '0'; valid: A B [LANES]"},
      {"0 x\n", "t:1: member 'x'"},
      {"0 1 0\n", "t:1: lanes '0'"},
      {"0 64\n", "t:1: member '64'"},
      {"0 1 1 1\n", "t:1: more than three numbers; valid: "},
      {"1 1\n", "t:1: a link from member 1 to itself"},
      {"0 1\n\n1 0\n", "t:3: members 1 and 0 have a link already; valid: each pair once"},
      {"0 1\n2 3\n", "t: no links lead from member 0 to member 2; valid: a connected topology"},
      {"1 2\n", "t: no links lead from member 0 to member 1"}};
  for (const auto& [text, error] : cases) {
    const auto read = Topology::parse(text, "t");
    ASSERT_FALSE(read) << text;
    EXPECT_TRUE(read.error().message.starts_with(error)) << read.error().message;
  }
}

TEST(Topology, IsReadBackFromItsLinksOnOneLine) {
  const Topology dgx = Topology::parse(dgx_1v, "dgx").value();
  EXPECT_TRUE(is_links(print(dgx)));
  EXPECT_EQ(Topology::parse_links(print(dgx)).value(), dgx);
  EXPECT_EQ(print(Topology::parse_links("1-0x3+2-1").value()), "0-1x3+1-2");
  EXPECT_FALSE(is_links("0-1.txt"));
  EXPECT_FALSE(is_links(""));
}

}  // namespace
}  // namespace starling::collective
