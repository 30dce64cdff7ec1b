/// Names of the allreduce exchange, and the jobs that can have it.
#include <gtest/gtest.h>

#include <string>

#include "starling/engine/core/training/exchanges.hpp"
#include "starling/engine/exchange/allreduce/sum_algorithm.hpp"

namespace starling::core {
namespace {

TEST(Allreduce, IsTheBarrierBspAndNoOther) {
  const auto checked = [](const char* exchange, const char* barrier, std::size_t workers = 4,
                          Mode mode = Mode::peer) {
    const auto valid =
        check_exchange(exchange, mode, *barrier::parse(barrier), default_recheck(mode), workers);
    return valid ? std::string{"accepted"} : valid.error().message;
  };
  EXPECT_EQ(checked("allreduce", "bsp"), "accepted");
  EXPECT_EQ(checked("allreduce:halving", "bsp", 256), "accepted");
  for (const char* barrier : {"asp", "pbsp:beta=2", "ssp:s=4"})
    EXPECT_EQ(checked("allreduce:ring", barrier),
              "barrier " + std::string{barrier} +
                  ": exchange allreduce:ring itself makes all workers wait for each other, as "
                  "barrier bsp does; valid: barrier bsp, or another exchange");
  EXPECT_EQ(checked("allreduce", "bsp", 257),
            "workers=257: exchange allreduce sums the updates of at most 256 workers; valid: fewer "
            "workers, or another exchange");
  EXPECT_EQ(checked("allreduce:bcube:k=2,overlap", "bsp", 9), "accepted");
  EXPECT_EQ(checked("allreduce:bcube:k=2", "bsp", 8),
            "workers=8: exchange allreduce:bcube:k=2: 8 members do not fill a cube of k=2; valid: "
            "1, 2^2, 3^2, 4^2, ...");
  EXPECT_EQ(checked("allreduce:groups:5", "bsp", 4),
            "workers=4: exchange allreduce:groups:5: groups of 5 among 4 members; valid: groups of "
            "1 to 4");
  EXPECT_EQ(checked("allreduce:trees:0-1+1-2,overlap", "bsp", 3), "accepted");
  EXPECT_NE(checked("allreduce:trees:0-1+1-2", "bsp", 4).find("has 3 members"), std::string::npos);
  EXPECT_NE(checked("allreduce:trees:links.txt", "bsp", 4).find("links.txt is a file"),
            std::string::npos);
  for (const char* exchange : {"allreduce", "allreduce:ring,overlap", "average"}) {
    EXPECT_TRUE(checked(exchange, "bsp", 4, Mode::hybrid)
                    .starts_with("exchange: " + std::string{exchange} +
                                 " does not work in hybrid mode; valid: mode peer"));
    EXPECT_NE(checked(exchange, "absp").find("valid: barrier bsp"), std::string::npos);
  }
  EXPECT_NE(checked("allreduce", "bsp", 4, Mode::central).find("does not work in central mode"),
            std::string::npos);
  EXPECT_NE(checked("gossip", "bsp").find("barrier bsp needs to see every worker's step"),
            std::string::npos);
  for (const char* exchange : {"gossip", "broadcast", "leader"})
    EXPECT_TRUE(checked(exchange, "bsp").ends_with("or use exchange allreduce")) << exchange;
  EXPECT_TRUE(checked("gossip", "ssp:s=4").ends_with("or use exchange owners in mode central"));
  EXPECT_TRUE(checked("owners", "bsp").ends_with("or use mode central"));
  EXPECT_EQ(checked("allreduce:overlap,ring", "bsp"),
            "exchange: allreduce: 'overlap,ring' is unknown; valid: ring,overlap");
  EXPECT_NE(checked("allreduce:rign", "bsp").find("did you mean 'ring'?"), std::string::npos);
  for (const char* bad :
       {"allreduce:", "allreduce:overlap,ring", "allreduce:ring,", "allreduce:,",
        "allreduce:overlap,overlap", "allreduce:trees:0-1+", "allreduce:x",
        "allreduce:ring,overlap,overlap", "allreduce:,overlap", "allreduce:bcube:k=2,k=3"})
    EXPECT_NE(checked(bad, "bsp").find("exchange: allreduce: "), std::string::npos) << bad;
  EXPECT_EQ(checked("allreduce:buckets=4", "bsp"), "accepted");
  EXPECT_EQ(checked("allreduce:parts,buckets=64", "bsp"), "accepted");
  EXPECT_EQ(checked("allreduce:ring,buckets=65", "bsp"),
            "exchange: allreduce: buckets: '65' must be a whole number >= 1 and <= 64");
  EXPECT_EQ(checked("allreduce:ring,buckets=0", "bsp"),
            "exchange: allreduce: buckets: '0' must be a whole number >= 1 and <= 64");
  EXPECT_EQ(checked("allreduce:overlap,buckets=2", "bsp"),
            "exchange: allreduce: 'buckets=2' follows another option; valid: one of overlap, or "
            "buckets=1 to buckets=64");
  EXPECT_EQ(checked("allreduce:ring,tree", "bsp"),
            "exchange: allreduce: 'ring,tree' is unknown; valid after the algorithm: overlap, or "
            "buckets=1 to buckets=64");
  for (const char* name : {"allreduce", "allreduce:overlap", "allreduce:ring,overlap",
                           "allreduce:buckets=3", "allreduce:groups:4,buckets=3"})
    EXPECT_EQ(print(parse_allreduce(name).value()), name);
  EXPECT_NE(checked("allreduce:groups:0", "bsp").find("the size of groups"), std::string::npos);
  EXPECT_NE(checked("allreduce:bcube:k=0", "bsp").find("bcube"), std::string::npos);
}

/// Each of many workers chooses for itself, so the choice must not take long.
TEST(Allreduce, ChoosesAmongManyWorkersByFewSchedules) {
  const auto chosen = [](std::size_t workers, double bytes) {
    return print(fastest_sum(workers, bytes).algorithm);
  };
  EXPECT_EQ(chosen(256, 100), "doubling");
  EXPECT_EQ(print(fastest_sum(256, 100, true).algorithm), "tree");
  EXPECT_NE(print(fastest_sum(4, 100, true).algorithm), "doubling");
  EXPECT_EQ(chosen(4, 100), "doubling") << "fewer messages than parts, which has 2 rounds, too";
  EXPECT_EQ(chosen(256, 1e9), "halving");
  for (std::size_t workers : {3, 5, 6, 7, 9})
    for (double bytes = 8e6; bytes < 2e8; bytes *= 1.1)
      EXPECT_EQ(chosen(workers, bytes), "ring")
          << "parts cost the same; " << workers << ", " << bytes;
}

}  // namespace
}  // namespace starling::core
