/// Jobs whose nodes leave or die take each sample of each epoch once, also if they go on from a
/// checkpoint that was saved afterwards.
#include "tests/tools/cluster/nodes.hpp"
#include "tests/tools/train/checkpoint_samples.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t samples = 800;  // a fifth of the 1,000 is kept to test on
/// The number of samples that 3 workers take at a step.
constexpr std::uint64_t all_batches = 60;

class SamplesOfNodes : public Nodes, public testing::WithParamInterface<const char*> {
 protected:
  std::string job(const std::string& epochs, int workers = 3) {
    return "--data digits:n=1000 --model softmax --optimizer sgd:lr=0.1 --quiet --json "
           "--workers " +
           std::to_string(workers) + " --epochs " + epochs + " " + GetParam() + " ";
  }
};

TEST_P(SamplesOfNodes, AreEachTakenOnceIfANodeLeavesAndTheJobGoesOnFromItsCheckpoint) {
  Process submit{work_, STARLING_PROGRAM,
                 words("submit" + to(0) + job("4.5") + "--delay exp:10ms --checkpoint c")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  ASSERT_EQ(starling(work_, "leave" + to(2)).code, 0);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  // The workers end after 4.5 epochs, up to a part of a step each.
  for (const std::uint64_t count : samples_of(work_.read("c")))
    EXPECT_NEAR(static_cast<double>(count), 4.5 * samples, all_batches);
  for (const int workers : {3, 5}) {
    const ProgramResult rest =
        starling(work_, "train " + job("6", workers) + "--resume c --checkpoint d");
    ASSERT_EQ(rest.code, 0) << rest.err;
    for (const std::uint64_t count : samples_of(work_.read("d"))) EXPECT_EQ(count, 6 * samples);
  }
}

TEST_P(SamplesOfNodes, AreLostOnlyWithAnUpdateInFlightIfANodeDies) {
  Process submit{work_, STARLING_PROGRAM,
                 words("submit" + to(0) + job("5") + "--delay exp:10ms --checkpoint c")};
  ASSERT_TRUE(wait_until([&] { return is_training(); }));
  processes_[2]->signal(SIGKILL);
  const ProgramResult ran = submit.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const std::uint64_t count : samples_of(work_.read("c"))) {
    EXPECT_LE(count, 5 * samples);
    const bool is_dynamic = std::string{GetParam()}.find("dynamic") != std::string::npos;
    EXPECT_GE(count, 5 * samples - (is_dynamic ? all_batches : all_batches / 3));
  }
}

INSTANTIATE_TEST_SUITE_P(In, SamplesOfNodes,
                         testing::Values("--batch 20 --mode peer --barrier pssp:s=4,beta=2",
                                         "--batch 20 --mode peer --exchange broadcast",
                                         "--batch 20 --mode hybrid --barrier asp",
                                         "--batch 20 --mode central --barrier bsp",
                                         "--batch 20 --mode central --barrier absp",
                                         "--batch dynamic:total=60 --mode peer",
                                         "--batch dynamic:total=60 --mode hybrid --barrier asp",
                                         "--batch dynamic:total=60 --mode central --barrier bsp"));

}  // namespace
}  // namespace starling::program
