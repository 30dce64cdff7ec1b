/// Jobs with a user's own models and barriers on three nodes.
#include <gtest/gtest.h>

#include <string>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

/// Nodes that run a user's program.
class OwnNodes : public Nodes {
 protected:
  const char* program() override { return STARLING_OWN_PROGRAM; }
};

TEST_F(OwnNodes, TrainModelsAndBarriersOfTheirOwn) {
  for (const char* mode_flags :
       {"--mode peer --barrier phalf:beta=2", "--mode central --barrier half"}) {
    const ProgramResult ran =
        run(work_, program(),
            words("submit" + to(1) +
                  "--model circle --data ring:radius=2 --optimizer adam:lr=0.05 "
                  "--workers 3 --epochs 300 --quiet --json --save m " +
                  mode_flags));
    ASSERT_EQ(ran.code, 0) << mode_flags << "\n" << ran.err;
    EXPECT_NE(ran.out.find("\"test_samples\":80"), std::string::npos) << ran.out;
    EXPECT_EQ(run(work_, program(), words("evaluate m")).code, 0);
  }
  // `starling` itself does not contain the model, and refuses the job before it asks a node.
  const ProgramResult other = starling(work_, "submit" + to(1) + "--model circle --data digits");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("circle"), std::string::npos) << other.err;
}

/// Every third gradient throws on each node. The worker tries again from the values that it has, so
/// the result is that of a model that never throws.
TEST_F(OwnNodes, ComputeAStepAgainIfItsGradientThrows) {
  const std::string job =
      "--data linear:d=1,n=100 --workers 3 --mode central --barrier bsp --steps 30 --seed 4 "
      "--optimizer sgd:lr=0.1 --schedule constant --batch 5 --json --quiet --model ";
  const ProgramResult one = run(work_, program(), words("train " + job + "mean"));
  ASSERT_EQ(one.code, 0) << one.err;
  const ProgramResult many = run(work_, program(), words("submit" + to(1) + job + "flaky"));
  ASSERT_EQ(many.code, 0) << many.err;
  const auto found = nlohmann::json::parse(many.out);
  EXPECT_EQ(found["updates"], 3 * 30);
  EXPECT_EQ(found["test_error"], nlohmann::json::parse(one.out)["test_error"]) << many.out;
  const ProgramResult never = run(work_, program(), words("submit" + to(1) + job + "throwing"));
  EXPECT_EQ(never.code, 1);
  EXPECT_NE(never.err.find("failed 3 times at step 1: no gradient today"), std::string::npos)
      << never.err;
}

}  // namespace
}  // namespace starling::program
