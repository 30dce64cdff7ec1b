/// Tests to whom a worker sends in each graph of gossip, and the names of the exchange.
#include "starling/engine/exchange/gossip/graph.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "starling/base/random.hpp"
#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/exchange/gossip/gossip.hpp"

namespace starling::core {
namespace {

TEST(GossipGraphs, HaveTheTargetsOfTheirRules) {
  Random random{3};
  for (std::size_t workers = 2; workers < 20; ++workers) {
    std::size_t hops = 1;
    while ((std::size_t{1} << hops) < workers) ++hops;
    for (std::size_t self = 0; self < workers; ++self) {
      for (std::uint64_t step = 0; step < 12; ++step) {
        EXPECT_EQ(gossip_target(GossipGraph::exponential, self, workers, step, random),
                  (self + (std::size_t{1} << (step % hops))) % workers);
        EXPECT_EQ(gossip_target(GossipGraph::ring, self, workers, step, random),
                  (self + 1) % workers);
      }
      std::vector<double> counts(workers);
      for (int i = 0; i < 1000; ++i)
        ++counts.at(gossip_target(GossipGraph::random, self, workers, 1, random));
      EXPECT_EQ(counts[self], 0);
      const double share = 1 / static_cast<double>(workers - 1);
      for (std::size_t other = 0; other < workers; ++other) {
        if (other == self) continue;
        EXPECT_NEAR(counts[other], 1000 * share, 6 * std::sqrt(1000 * share * (1 - share)));
      }
    }
  }
}

TEST(GossipGraphs, AreChosenByName) {
  for (const char* name : {"gossip", "gossip:exponential", "gossip:ring", "gossip:random",
                           "gossip:lag=1", "gossip:ring,lag=64", "gossip:lag=0"})
    EXPECT_TRUE(check_exchange(name, Mode::peer)) << name;
  const auto refusal = [](const char* name, Mode mode = Mode::peer) {
    return check_exchange(name, mode).error().message;
  };
  EXPECT_EQ(refusal("gossip:rign"),
            "exchange: gossip: 'rign' is unknown; did you mean 'ring'? valid: "
            "exponential, ring, random, lag=1");
  for (const char* bad : {"gossip:lag=65", "gossip:lag=-1", "gossip:lag", "gossip:lag=x",
                          "gossip:ring,ring", "gossip:ring,lag=1,lag=2", "gossip:late=1"})
    EXPECT_NE(refusal(bad).find("exchange: gossip: "), std::string::npos) << bad;
  EXPECT_EQ(parse_gossip("gossip:random,lag=2").value(), (GossipSettings{GossipGraph::random, 2}));
  EXPECT_EQ(refusal("owners:ring"),
            "exchange: owners takes no argument, and 'ring' is given; valid: owners");
  EXPECT_NE(refusal("gossip:ring", Mode::central)
                .find("does not work in central mode; valid: mode "
                      "peer"),
            std::string::npos);
}

}  // namespace
}  // namespace starling::core
