/// Trains under absp in one process, saves checkpoints and resumes. Says what is refused.
#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"
#include "tests/tools/train/checkpoint_samples.hpp"
#include "tests/waiting.hpp"

namespace starling::program {
namespace {

constexpr std::uint64_t samples = 240;  // a fifth of the 300 is kept to test on

class AbspProgram : public testing::Test {
 protected:
  ProgramResult train(const std::string& more) const {
    return starling(folder_,
                    "train --data digits:n=300 --model softmax --optimizer sgd:lr=0.1 --batch 20 "
                    "--mode central --quiet --json " +
                        more);
  }
  void expect_samples(const std::string& file, std::uint64_t count) const {
    const auto all = samples_of(folder_.read(file));
    EXPECT_FALSE(all.empty());
    for (const std::uint64_t range : all) EXPECT_EQ(range, count) << file;
  }
  Folder folder_;
};

constexpr const char* slow = "--barrier absp --workers 4 --delay const:2ms --straggler 1:2x ";

TEST_F(AbspProgram, GoesOnFromACheckpointInTheMiddleOfAnEpoch) {
  const ProgramResult first = train(std::string{slow} + "--steps 11 --checkpoint c");
  ASSERT_EQ(first.code, 0) << first.err;
  for (const char* next : {"--barrier absp --workers 4 --delay const:2ms --straggler 1:2x ",
                           "--barrier absp --workers 3 ", "--barrier bsp --workers 4 "}) {
    const ProgramResult rest = train(std::string{next} + "--epochs 9 --resume c --checkpoint d");
    ASSERT_EQ(rest.code, 0) << next << rest.err;
    expect_samples("d", 9 * samples);
  }
}

TEST_F(AbspProgram, GoesOnFromACheckpointOfBsp) {
  ASSERT_EQ(train("--barrier bsp --workers 4 --steps 7 --checkpoint c").code, 0);
  const ProgramResult rest = train(std::string{slow} + "--epochs 5 --resume c --checkpoint d");
  ASSERT_EQ(rest.code, 0) << rest.err;
  expect_samples("d", 5 * samples);
}

TEST_F(AbspProgram, SavesCheckpointsWhileItRuns) {
  Process long_job{folder_, STARLING_PROGRAM,
                   words("train --data digits:n=300 --model softmax --optimizer sgd:lr=0.1 "
                         "--batch 20 --mode central --quiet --barrier absp --workers 4 --delay "
                         "const:20ms --straggler 1:2x --epochs 1000 --checkpoint c "
                         "--checkpoint-every 3")};
  ASSERT_TRUE(wait_until([&] { return folder_.has("c"); })) << long_job.err();
  long_job.signal(SIGKILL);
  EXPECT_EQ(long_job.wait().code, 128 + SIGKILL);
  const ProgramResult rest =
      train("--barrier absp --workers 4 --epochs 100 --resume c --checkpoint d");
  ASSERT_EQ(rest.code, 0) << rest.err;
  expect_samples("d", 100 * samples);
}

TEST_F(AbspProgram, SaysForHowLongASampleWasNotVisited) {
  const ProgramResult ran = train(std::string{slow} + "--epochs 6");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto summary = nlohmann::json::parse(ran.out);
  const double gap = summary["longest_gap_s"];
  // In six epochs a sample has six visits, so one of the times between them, before the first and
  // after the last is at least a seventh of the whole.
  EXPECT_GE(gap, summary["wall_s"].get<double>() / 7);
  EXPECT_LE(gap, summary["wall_s"].get<double>());
  const ProgramResult table = starling(
      folder_, "train --data digits:n=300 --model softmax --mode central --barrier absp --steps 9");
  EXPECT_NE(table.out.find("  longest gap "), std::string::npos) << table.out;
  const ProgramResult other = train("--barrier bsp --steps 5");
  EXPECT_FALSE(nlohmann::json::parse(other.out).contains("longest_gap_s"));
}

TEST_F(AbspProgram, RefusesModelsWhoseBatchesHaveNoParts) {
  const ProgramResult ran =
      run(folder_, STARLING_PROGRAM,
          {"train", "--model", "net:layers=dense 16; batch-norm; relu; dense 10", "--data",
           "digits:n=300", "--mode", "central", "--barrier", "absp"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--barrier: barrier absp: the model's '"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("valid: bsp, or a model without it"), std::string::npos) << ran.err;
}

TEST_F(AbspProgram, RefusesDynamicBatchesAndModesWithoutACoordinator) {
  const std::string data = "train --data digits:n=300 --barrier absp --workers 4 ";
  EXPECT_NE(starling(folder_, data + "--mode central --batch dynamic:total=40")
                .err.find("--barrier: barrier absp: hands in a part of a batch"),
            std::string::npos);
  EXPECT_NE(starling(folder_, data + "--mode hybrid")
                .err.find("--barrier: barrier absp needs to see every worker's step"),
            std::string::npos);
}

TEST_F(AbspProgram, SimulatesTheLongestGapBetweenTwoVisits) {
  const std::string sim =
      "sim --level protocol --mode central --data digits:n=300 --model softmax --batch 20 "
      "--workers 4 --straggler 1:2x --step-time gamma:mean=100ms,shape=400 --horizon 10s "
      "--barrier bsp --barrier absp ";
  const ProgramResult text = starling(folder_, sim);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("longest gap"), std::string::npos) << text.out;
  const ProgramResult json = starling(folder_, sim + "--json");
  const auto barriers = nlohmann::json::parse(json.out);
  EXPECT_FALSE(barriers.at(0).contains("longest_gap_s"));
  EXPECT_GT(barriers.at(1).at("longest_gap_s").get<double>(), 0.3);
  EXPECT_LT(barriers.at(1).at("longest_gap_s").get<double>(), 1.2);
  EXPECT_GT(barriers.at(1).at("updates").get<double>(),
            1.7 * barriers.at(0).at("updates").get<double>());
}

/// While a model is evaluated, the workers get several new deals.
TEST(AbspTarget, LeavesACheckpointOnceItIsReached) {
  const Folder folder;
  const std::string job =
      "train --data digits:n=8000 --split 100 --model softmax --mode central --barrier absp "
      "--batch "
      "20 --workers 4 --quiet ";
  const ProgramResult ran =
      starling(folder, job + "--until accuracy=0.5 --eval-every 1 --steps 30000 --checkpoint c");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const ProgramResult rest = starling(folder, job + "--steps 40000 --seconds 0.2 --resume c");
  EXPECT_EQ(rest.code, 0) << rest.err;
}

}  // namespace
}  // namespace starling::program
