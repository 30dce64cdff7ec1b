#include "starling/barrier/rules/absp.hpp"

#include <gtest/gtest.h>

#include "starling/barrier/barrier.hpp"

namespace starling::barrier {
namespace {

TEST(Absp, PassesAsBspDoes) {
  const Barrier absp{Absp{}};
  EXPECT_TRUE(is_bsp(absp));
  EXPECT_TRUE(hands_in_early(absp));
  EXPECT_FALSE(hands_in_early({Bsp{}}));
  EXPECT_TRUE(needs_every_step(absp));
  EXPECT_EQ(spread_bound(absp), Step{1});
  EXPECT_EQ(promised_floor(absp, 7), Step{7});
  EXPECT_TRUE(admits(absp, 5, std::vector<Step>{5, 6, finished}));
  EXPECT_FALSE(admits(absp, 5, std::vector<Step>{5, 4}));
}

TEST(Absp, HasNoOptionsAndNoSampledForm) {
  EXPECT_EQ(print(parse("absp").value()), "absp");
  EXPECT_FALSE(parse("absp:s=1"));
  EXPECT_EQ(parse("pabsp:beta=2").error().message,
            "barrier: 'pabsp': absp has no sampled form, for all workers hand in when the first "
            "one has computed its batch; valid: absp, or another sampled barrier, as "
            "pdssp:low=3,high=15,beta=2");
}

}  // namespace
}  // namespace starling::barrier
