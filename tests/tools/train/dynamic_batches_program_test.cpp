/// Trains with dynamic batches in one process, and resumes. No sample of an epoch is lost, and none
/// is taken twice.
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "tests/tools/counts.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// A sample that the workers take at a step of 20 samples adds 15: 60 for each of its 4 parts.
class DynamicBatches : public testing::Test {
 protected:
  /// A job over 240 samples, because a fifth is held out: an epoch has 12 steps.
  ProgramResult train(const std::string& more) const {
    return run(folder_, STARLING_OWN_PROGRAM,
               words("train --data linear:d=1,n=300 --model counts --optimizer sgd:lr=1 "
                     "--schedule constant --seed 3 --workers 4 --quiet --json " +
                     more));
  }
  [[nodiscard]] Counts counts(const std::string& file) const { return counts_in(folder_, file); }
  Folder folder_;
};

constexpr const char* dynamic = "--batch dynamic:total=20 ";

/// Returns the sizes of the workers' batches. Expects that the slow worker, the last one, has the
/// smallest.
std::vector<std::uint64_t> batches_of(const ProgramResult& ran) {
  auto sizes = nlohmann::json::parse(ran.out).at("batches").get<std::vector<std::uint64_t>>();
  EXPECT_EQ(sizes.size(), 4U);
  EXPECT_LT(sizes.back(), 5U) << "the sizes have not changed";
  return sizes;
}

TEST_F(DynamicBatches, TakeEachSampleOnceUnderEveryBarrier) {
  for (const char* flags :
       {"--mode central --barrier asp ", "--mode central --barrier ssp:s=2 ",
        "--mode hybrid --barrier pssp:s=4,beta=2 ", "--mode peer --barrier pbsp:beta=2 ",
        "--mode peer --barrier asp --exchange broadcast "}) {
    const ProgramResult ran = train(std::string{dynamic} + flags + "--epochs 5 --delay const:1ms " +
                                    "--straggler 1:4x --save m");
    ASSERT_EQ(ran.code, 0) << flags << ran.err;
    EXPECT_EQ(counts("m"), (Counts{{75, 240}})) << flags;
    EXPECT_EQ(nlohmann::json::parse(ran.out).at("batch"), "dynamic:total=20");
    (void)batches_of(ran);
  }
}

TEST_F(DynamicBatches, SizesAddUpToTheTotalUnderBsp) {
  const ProgramResult ran = train(std::string{dynamic} +
                                  "--mode central --barrier bsp --steps 40 --delay const:2ms "
                                  "--straggler 1:4x");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto sizes = batches_of(ran);
  ASSERT_EQ(sizes.size(), 4U);
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), 20U);
}

TEST_F(DynamicBatches, ResumeWithAndWithoutThem) {
  const std::string peers = "--mode peer --barrier pssp:s=4,beta=2 ";
  ASSERT_EQ(
      train(dynamic + peers + "--steps 30 --delay const:1ms --straggler 1:4x --checkpoint c").code,
      0);
  ASSERT_EQ(train("--batch 5 " + peers + "--steps 17 --checkpoint d").code, 0);
  for (const char* file : {"c", "d"})
    for (const char* batch : {dynamic, "--batch 5 "}) {
      const ProgramResult ran =
          train(batch + peers + "--epochs 5 --save m --resume " + std::string{file});
      ASSERT_EQ(ran.code, 0) << file << batch << ran.err;
      EXPECT_EQ(counts("m"), (Counts{{75, 240}})) << file << batch;
    }
}

TEST_F(DynamicBatches, ResumeUnderBspAfterTheSizesHaveChanged) {
  const std::string servers = "--mode central --barrier bsp --delay const:1ms --straggler 1:4x ";
  const ProgramResult first =
      train(dynamic + servers + "--steps 30 --checkpoint c --checkpoint-every 5");
  ASSERT_EQ(first.code, 0) << first.err;
  (void)batches_of(first);
  const ProgramResult ran = train(dynamic + servers + "--epochs 5 --resume c --checkpoint c");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(counts("c"), (Counts{{75, 240}}));
  const ProgramResult again = train(dynamic + servers + "--epochs 6 --resume c --save m");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(counts("m"), (Counts{{90, 240}}));
}

TEST_F(DynamicBatches, AreRefusedByNetsThatNeedTwoSamples) {
  const ProgramResult ran =
      run(folder_, STARLING_OWN_PROGRAM,
          {"train", "--model", "net:layers=dense 16; batch-norm; relu; dense 10", "--data",
           "digits:n=300", "--batch", "dynamic:total=64"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--batch: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("dynamic batches may have 1 sample; valid: --batch 32"), std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace starling::program
