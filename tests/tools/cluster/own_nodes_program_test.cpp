/// Jobs with a user's own models and barriers on three nodes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/cluster/nodes.hpp"
#include "tests/tools/counts.hpp"

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
  // The model does not learn from rows of digits: the nodes refuse the job.
  const ProgramResult other = starling(work_, "submit" + to(1) + "--model circle --data digits");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("circle"), std::string::npos) << other.err;
}

/// Each case applies every operation of data sets to other data, and compares it with a loop.
TEST_F(OwnNodes, FindWhatLoopsFindWithEveryOperationOfDataSets) {
  work_.write("in.txt", "unread\n");
  for (int workers = 1; workers <= 8; ++workers) {
    const ProgramResult ran = run(
        work_, program(),
        words("run operations in.txt --cases 125 --quiet --workers " + std::to_string(workers)));
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, "compared 125 cases\n") << workers;
  }
  for (const std::string flags : {"--cases 15 --workers 1", "--cases 15 --workers 8 --threads 2",
                                  "--cases 0 --workers 3 --big-group --memory 8MiB"}) {
    const ProgramResult ran = run(
        work_, program(), words("submit" + to(1) + "--flow operations in.txt --quiet " + flags));
    ASSERT_EQ(ran.code, 0) << flags << ran.err;
    EXPECT_EQ(ran.out, flags.find("big") == std::string::npos ? "compared 15 cases\n"
                                                              : "compared 0 cases\n1001 groups\n");
  }
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

/// On each node, a gradient throws after the worker has written it. The step is made again, and
/// counts each of its samples once.
TEST_F(OwnNodes, CountEachSampleOnceIfAGradientThrows) {
  for (const std::string flags :
       {"--mode peer --barrier pssp:s=4,beta=2", "--mode hybrid --barrier asp",
        "--mode central --barrier ssp:s=2", "--mode peer --barrier asp --exchange broadcast"}) {
    for (auto& process : processes_) process->signal(SIGKILL);
    processes_.clear();
    addresses_.clear();
    start();  // processes that have computed no gradient yet
    const ProgramResult ran =
        run(work_, program(),
            words("submit" + to(1) +
                  "--data linear:d=1,n=300 --model counts:throws --optimizer sgd:lr=1 --batch 5 "
                  "--schedule constant --workers 3 --epochs 4 --quiet --json --save m " +
                  flags));
    ASSERT_EQ(ran.code, 0) << flags << ran.err;
    for (const Folder& folder : folders_) {
      EXPECT_TRUE(folder.has("thrown"));
      std::filesystem::remove(folder.path() / "thrown");
    }
    // A fifth of the 300 is held out. Four epochs of three workers are 4 x 60 / 3.
    EXPECT_EQ(counts_in(work_, "m"), (Counts{{80, 240}})) << flags;
    EXPECT_EQ(nlohmann::json::parse(ran.out)["updates"], 4 * 240 / 5) << flags;
  }
}

/// A job that is saved on nodes goes on in one process, and the reverse, with other workers, in
/// another mode and under another barrier.
TEST_F(OwnNodes, GoOnFromCheckpointsWithOtherWorkersWithoutLosingOrRepeatingASample) {
  work_.write("job.toml",
              "data = \"linear:d=1,n=300\"\nmodel = \"counts\"\noptimizer = \"sgd:lr=1\"\n"
              "batch = 5\nschedule = \"constant\"\nseed = 3\n");
  const std::string nodes = "submit" + to(1) + "job.toml --quiet ";
  const std::string one_process = "train job.toml --quiet ";
  const auto ran = [&](const std::string& line) { return run(work_, program(), words(line)); };
  // 7 rounds of 20 samples: 100 are left of the epoch.
  const std::string first = "--mode central --barrier bsp --workers 4 --steps 7 --checkpoint ";
  ASSERT_EQ(ran(nodes + first + "c").code, 0);
  ASSERT_EQ(ran(one_process + first + "d").code, 0);
  for (const std::string file : {"c", "d"})
    ASSERT_EQ(counts_in(work_, file), (Counts{{0, 100}, {15, 140}})) << file;
  for (const auto& [begins, resumes, file] :
       {std::tuple{"nodes", one_process, "c"}, {"one process", nodes, "d"}, {"nodes", nodes, "c"}})
    for (const auto& [flags, epoch_end, count] :
         {std::tuple{"--mode peer --barrier pssp:s=4,beta=2 --workers 6 --steps ", "8", 10},
          {"--mode hybrid --barrier pssp:s=4,beta=2 --workers 3 --steps ", "16", 20}}) {
      const ProgramResult rest = ran(resumes + flags + epoch_end + " --save m --resume " + file);
      ASSERT_EQ(rest.code, 0) << begins << resumes << flags << rest.err;
      Counts expected{{15, 140}};
      expected[count] += 100;
      EXPECT_EQ(counts_in(work_, "m"), expected) << begins << resumes << flags;
    }
}

}  // namespace
}  // namespace starling::program
