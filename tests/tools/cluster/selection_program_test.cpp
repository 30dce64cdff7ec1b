/// Jobs on nodes that stop early, and jobs that begin with the model of another job.
#include <nlohmann/json.hpp>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

TEST_F(Nodes, StopAJobEarlyAndBeginAnotherWithItsModel) {
  const auto submit = [&](const std::string& more) {
    const ProgramResult ran =
        starling(work_, "submit" + to(0) +
                            "--data digits:n=1000 --model softmax --workers 3 "
                            "--eval-every 20 --json --quiet " +
                            more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out, nullptr, false);
  };
  const auto early = submit("--steps 100000 --optimizer adam:lr=0.05 --patience 5 --save m");
  EXPECT_EQ(early["end"], "stopped early") << early;
  EXPECT_EQ(early["kept"], "best");
  EXPECT_EQ(early["kept_step"], early["best_step"]);
  const ProgramResult ran = starling(work_, "evaluate m --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_DOUBLE_EQ(nlohmann::json::parse(ran.out)["loss"], early["test_loss"]);

  const std::string one_step = "--steps 1 --optimizer sgd:lr=0.0001 ";
  const double fresh = submit(one_step)["test_loss"];
  const double begun = submit(one_step + "--init m")["test_loss"];
  EXPECT_LT(begun, 0.8 * fresh);
  EXPECT_NEAR(begun, early["test_loss"].get<double>(), 0.05 * fresh);
}

}  // namespace
}  // namespace starling::program
