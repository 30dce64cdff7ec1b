#include "starling/barrier/rules/quorum.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {
namespace {

TEST(Quorum, PassesOnceAShareOfTheWorkersHasArrived) {
  const Quorum quorum{0.75};
  EXPECT_TRUE(quorum.admits(5, std::vector<Step>{5, 6, 2}));
  EXPECT_FALSE(quorum.admits(5, std::vector<Step>{5, 4, 2}));
  EXPECT_TRUE(quorum.admits(2, std::vector<Step>{5, 6, 2})) << "a late worker awaits nobody";
  EXPECT_TRUE(quorum.admits(5, std::vector<Step>{finished, 5, 2}));
  EXPECT_TRUE(quorum.admits(5, std::vector<Step>{}));
}

TEST(Quorum, NeedsTheShareRoundedUp) {
  EXPECT_EQ(Quorum{0.9}.needed(10), 9) << "although 0.9 is not exact";
  EXPECT_EQ(Quorum{0.9}.needed(11), 10);
  EXPECT_EQ(Quorum{0.5}.needed(3), 2);
  EXPECT_EQ(Quorum{0.01}.needed(3), 1);
  EXPECT_EQ(Quorum{1}.needed(7), 7);
}

TEST(Quorum, IsBspWithTheShareOne) {
  EXPECT_TRUE(is_bsp({Quorum{1}}));
  EXPECT_FALSE(is_bsp({Quorum{0.99}}));
  EXPECT_EQ(spread_bound({Quorum{0.99}}), std::nullopt);
  EXPECT_EQ(print(parse("pquorum:q=0.5,beta=3").value()), "pquorum:q=0.5,beta=3");
}

TEST(Quorum, RefusesWhatIsNoShare) {
  EXPECT_EQ(parse("quorum:q=0").error().message,
            "barrier: quorum: q=0: valid: a number above 0 and at most 1");
  for (const char* text : {"quorum:q=1.1", "quorum:q=-1", "quorum:q=all"})
    EXPECT_FALSE(parse(text)) << text;
}

}  // namespace
}  // namespace starling::barrier
