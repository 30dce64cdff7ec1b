/// Resumes jobs from checkpoints with other workers, in another mode and under another barrier. No
/// sample of the epoch is lost, and none is taken twice.
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/tools/counts.hpp"
#include "tests/tools/program.hpp"
#include "tests/tools/train/checkpoint_samples.hpp"

namespace starling::program {
namespace {

/// How often each sample was taken: a sample of a job with P workers adds 1 / P.
class ResumeChanged : public testing::Test {
 protected:
  /// A job over 240 samples, because a fifth is held out, with batches of 5.
  ProgramResult train(const std::string& more) const {
    return run(folder_, STARLING_OWN_PROGRAM,
               words("train --data linear:d=1,n=300 --model counts --optimizer sgd:lr=1 --batch 5 "
                     "--schedule constant --seed 3 " +
                     more));
  }
  [[nodiscard]] std::vector<int> values(const std::string& file) const {
    return count_values(folder_, file);
  }
  [[nodiscard]] Counts counts(const std::string& file) const { return counts_in(folder_, file); }
  Folder folder_;
};

constexpr const char* four_workers = "--mode central --barrier bsp --workers 4 --quiet ";

TEST_F(ResumeChanged, TakesEachSampleOfTheEpochOnce) {
  // 7 rounds of 20 samples: 100 are left of the epoch.
  ASSERT_EQ(train(std::string{four_workers} + "--steps 7 --checkpoint c").code, 0);
  ASSERT_EQ(counts("c"), (Counts{{0, 100}, {15, 140}}));
  struct Change {
    std::string flags;
    std::string first_step;
    std::string epoch_end;
    int count;
  };
  for (const Change& change : std::vector<Change>{
           {"--mode peer --barrier pssp:s=4,beta=2 --workers 6 ", "4", "8", 10},
           {"--mode hybrid --barrier asp --workers 3 ", "9", "16", 20},
           {"--mode hybrid --barrier pssp:s=4,beta=2 --workers 3 ", "9", "16", 20},
           {"--mode central --barrier ssp:s=2 --workers 5 ", "6", "10", 12},
           {"--mode central --barrier bsp --workers 2 ", "14", "24", 30},
           {"--mode peer --barrier asp --exchange broadcast --workers 4 ", "7", "12", 15},
           {"--mode central --barrier asp --workers 1 --shards 2 ", "28", "48", 60}}) {
    const ProgramResult ran =
        train(change.flags + "--resume c --save m --json --steps " + change.epoch_end);
    ASSERT_EQ(ran.code, 0) << change.flags << ran.err;
    EXPECT_NE(ran.err.find("--resume: c: was saved by 4 workers under bsp in mode central; "),
              std::string::npos)
        << ran.err;
    EXPECT_NE(ran.err.find("go on from step " + change.first_step +
                           ", and first take the 100 samples left of the epochs begun"),
              std::string::npos)
        << ran.err;
    Counts expected{{15, 140}};
    expected[change.count] += 100;
    EXPECT_EQ(counts("m"), expected) << change.flags;
  }
}

/// The time ends within a round, after different numbers of steps of the workers.
TEST_F(ResumeChanged, AfterAStopBetweenTwoRounds) {
  for (const char* exchange : {"average:every=8", "allreduce:overlap"}) {
    const std::string flags =
        std::string{"--mode peer --workers 3 --quiet --exchange "} + exchange + " ";
    const ProgramResult stopped =
        train(flags + "--delay const:10ms --straggler 1:4x --seconds 0.2 --checkpoint c");
    ASSERT_EQ(stopped.code, 0) << stopped.err;
    ASSERT_EQ(stopped.err, "") << exchange;
    const ProgramResult resumed = train(flags + "--epochs 1 --resume c --save m");
    ASSERT_EQ(resumed.code, 0) << exchange << ": " << resumed.err;
    // How much a sample of the last round adds depends on how many the worker had computed.
    for (const auto& [value, samples] : counts("m"))
      EXPECT_GT(value, 0) << exchange << ": " << samples << " samples were never taken";
  }
}

TEST_F(ResumeChanged, AgainWithinTheEpoch) {
  ASSERT_EQ(train(std::string{four_workers} + "--steps 7 --checkpoint c").code, 0);
  const std::string peers = "--mode peer --barrier pssp:s=4,beta=2 --workers 6 --quiet ";
  ASSERT_EQ(train(peers + "--steps 6 --resume c --checkpoint d").code, 0);
  EXPECT_EQ(counts("d"), (Counts{{0, 40}, {10, 60}, {15, 140}}));
  // The same workers go on, to the end of the epoch and through the next one.
  ASSERT_EQ(train(peers + "--steps 8 --resume d --checkpoint e").code, 0);
  EXPECT_EQ(counts("e"), (Counts{{10, 100}, {15, 140}}));
  const ProgramResult next = train(peers + "--steps 16 --resume e --checkpoint f");
  ASSERT_EQ(next.code, 0);
  EXPECT_EQ(next.err, "");
  EXPECT_EQ(counts("f"), (Counts{{20, 100}, {25, 140}}));
  // Other workers take what the second ones left.
  const std::string servers = "--mode hybrid --barrier asp --workers 3 --quiet ";
  ASSERT_EQ(train(servers + "--steps 16 --resume d --checkpoint g").code, 0);
  EXPECT_EQ(counts("g"), (Counts{{10, 60}, {15, 140}, {20, 40}}));
  ASSERT_EQ(train(servers + "--steps 32 --resume g --checkpoint h").code, 0);
  EXPECT_EQ(counts("h"), (Counts{{30, 60}, {35, 140}, {40, 40}}));
}

TEST_F(ResumeChanged, CountsTheUpdatesOfAllWorkers) {
  ASSERT_EQ(train(std::string{four_workers} + "--steps 7 --checkpoint c").code, 0);
  const std::string peers = "--mode peer --barrier pssp:s=4,beta=2 --workers 6 --json ";
  const ProgramResult second = train(peers + "--steps 6 --quiet --resume c --checkpoint d");
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.err.find("go on from step 4"), std::string::npos)
      << "--quiet does not hide it: " << second.err;
  EXPECT_EQ(nlohmann::json::parse(second.out)["updates"], 28 + 6 * 2) << second.out;
  const std::string servers = "--mode hybrid --barrier asp --workers 3 ";
  const ProgramResult third = train(servers + "--steps 16 --resume d --checkpoint e");
  ASSERT_EQ(third.code, 0) << third.err;
  // 40 samples were left of the epoch: 8 batches, of which each worker takes at most 3.
  EXPECT_NE(third.out.find(", 40 of them before, "), std::string::npos) << third.out;
  const ProgramResult fourth = train(servers + "--steps 20 --quiet --json --resume e");
  ASSERT_EQ(fourth.code, 0) << fourth.err;
  const auto updates = [](const ProgramResult& ran) {
    return std::stoi(ran.out.substr(ran.out.find("  updates     ") + 14));
  };
  EXPECT_EQ(nlohmann::json::parse(fourth.out)["updates"], updates(third) + 3 * 4) << fourth.out;
}

TEST_F(ResumeChanged, RefusesANumberOfUpdatesThatIsNone) {
  ASSERT_EQ(train(std::string{four_workers} + "--steps 7 --checkpoint c").code, 0);
  std::string content = folder_.read("c");
  content.replace(content.find("crc32"), 5, "other");
  const std::string written = "\"job.updates\":\"28\"";
  const auto at = content.find(written);
  ASSERT_NE(at, std::string::npos);
  folder_.write("c", content.replace(at, written.size(), "\"job.updates\":\"2x\""));
  const ProgramResult ran = train("--workers 2 --steps 30 --trust-file --resume c");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--resume: c: its updates is '2x'; valid: a number from 0 on"),
            std::string::npos)
      << ran.err;
}

TEST_F(ResumeChanged, WhenWorkersAreEpochsApart) {
  const ProgramResult apart = train(
      "--mode peer --barrier asp --workers 2 --straggler 1:10x --delay const:2ms "
      "--seconds 0.5 --checkpoint c --quiet --json");
  ASSERT_EQ(apart.code, 0) << apart.err;
  // With two workers, an epoch has 24 steps.
  const int fastest = nlohmann::json::parse(apart.out)["spread"]["max"];
  const int epochs = (fastest + 23) / 24;
  ASSERT_GT(epochs, 1);
  const ProgramResult ran = train(
      "--mode peer --barrier asp --workers 1 --quiet --resume c "
      "--save m --steps " +
      std::to_string(48 * epochs));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::vector<int> before = values("c");
  const std::vector<int> after = values("m");
  ASSERT_EQ(before.size(), 240U);
  ASSERT_EQ(after.size(), 240U);
  // Two workers added 30 / 60 each time, and one adds the rest of `epochs` times.
  for (std::size_t sample = 0; sample < before.size(); ++sample)
    EXPECT_EQ(after[sample], before[sample] + 60 * (epochs - before[sample] / 30)) << sample;
}

TEST_F(ResumeChanged, RefusesDealsThatNoJobCanHaveHad) {
  ASSERT_EQ(train(std::string{four_workers} + "--steps 7 --checkpoint c").code, 0);
  const std::string peers = "--mode peer --barrier asp --workers 2 --quiet ";
  ASSERT_EQ(train(peers + "--steps 20 --resume c --checkpoint d").code, 0);
  struct Wrong {
    std::size_t element;
    std::uint64_t number;
    std::string error_part;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {1, 0, "ends within a deal"},  // a batch of 0 says that the sizes follow
           {3, 5, "ends within a deal"},
           {3, UINT64_MAX, "ends within a deal"},
           {4, std::uint64_t{1} << 60U,
            "a worker has taken 1152921504606846976 steps or samples, more than any job takes"},
           {4, 100'000, "epochs apart; valid: up to 100"},
           {0, UINT32_MAX, "a former deal begins with epoch 4294967295; valid: "},
           {4, 30, "holds worker 0 at step 20 of range 0 with "}}) {
    folder_.write("e",
                  with_number(folder_.read("d"), "starling.deals", wrong.element, wrong.number));
    const ProgramResult ran = train(peers + "--steps 30 --trust-file --resume e");
    EXPECT_EQ(ran.code, 2) << wrong.error_part;
    EXPECT_NE(ran.err.find(wrong.error_part), std::string::npos) << ran.err << wrong.error_part;
  }
}

/// The ledgers of its ranges have more steps than the ranges have updates.
TEST(ResumeOfAnAlgorithm, WhoseStepsDoNotAllChangeATensorIsExact) {
  const Folder folder;
  const auto train = [&](const std::string& flags) {
    return run(folder, STARLING_OWN_PROGRAM,
               words("train --model rare --data digits:n=200 --mode central --barrier bsp "
                     "--workers 2 --json --quiet " +
                     flags));
  };
  ASSERT_EQ(train("--steps 12 --checkpoint c").code, 0);
  const ProgramResult ran = train("--steps 24 --resume c");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["test_sum"], 16);
}

/// No step changes the rows of one of the ranges.
TEST(CheckpointOfASparseModel, CountsTheSamplesOfAllStepsInEachRange) {
  const Folder folder;
  std::string rows;
  for (int i = 0; i < 200; ++i) rows += i % 2 == 0 ? "-1 1:1\n" : "1 2:1\n";
  folder.write("x.svm", rows);
  const ProgramResult ran = starling(
      folder,
      "train --data libsvm:x.svm,features=40000 --holdout 0.2 --model logistic --optimizer "
      "sgd:lr=0.1 --mode central --shards 2 --barrier asp --workers 1 --batch 5 --steps 20 --quiet "
      "--checkpoint c");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(samples_of(folder.read("c")), (std::vector<std::uint64_t>{100, 100, 100}));
}

}  // namespace
}  // namespace starling::program
