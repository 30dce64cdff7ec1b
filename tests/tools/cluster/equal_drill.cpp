/// The same job in one process and on three hosts, in every mode.
#include <array>

#include "test_paths.hpp"
#include "tests/tools/cluster/drills.hpp"

namespace starling::program {
namespace {

class Equal : public Drill {
 protected:
  static constexpr const char* three_seeds[] = {"1", "2", "3"};

  static std::string data() {
    const char* chosen = std::getenv("STARLING_DATA_DIR");
    return std::filesystem::weakly_canonical(chosen != nullptr ? chosen : STARLING_DATA_DIR)
        .string();
  }
};

INSTANTIATE_TEST_SUITE_P(In, Equal, testing::ValuesIn(ways), name_of);

TEST_P(Equal, MnistIsLearnedAsWellAsInOneProcess) {
  const std::string images = data() + "/mnist-10k-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(images)) GTEST_SKIP() << "no data sets at " << data();
  ASSERT_NO_FATAL_FAILURE(begin(3));
  if (IsSkipped()) return;
  double here_sum = 0;
  double there_sum = 0;
  for (const char* seed : three_seeds) {
    const std::string job = "--data idx:" + images + "," + data() +
                            "/mnist-10k-labels-idx1-ubyte.gz --split 8000 --model mlp:784-128-10 "
                            "--optimizer sgd:lr=0.5 --batch 8 --epochs 10 --workers 6 --json "
                            "--quiet --seed " +
                            seed + " " + flags(GetParam());
    const Folder folder;
    const Ran here = run(folder, STARLING_PROGRAM, words("train " + job + "--save m.safetensors"));
    ASSERT_EQ(here.code, 0) << here.err;
    fleet_->submit(1, job + "--save m.safetensors");
    const Ran there = fleet_->finish();
    ASSERT_EQ(there.code, 0) << there.err;
    EXPECT_EQ(figure(there.out, "updates"), 6 * figure(there.out, "max"));
    const double accuracy_here = figure(here.out, "test_accuracy");
    const double accuracy_there = figure(there.out, "test_accuracy");
    const double apart = distance(elements(fleet_->work().read("m.safetensors")),
                                  elements(folder.read("m.safetensors")));
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(),
                  "accuracy here %.4f, on three hosts %.4f in %.1f s; parameters apart by %.1e",
                  accuracy_here, accuracy_there, figure(there.out, "wall_s"), apart);
    tell(std::string{"seed_"} + seed, line.data());
    EXPECT_NEAR(accuracy_here, accuracy_there, 0.01);
    if (std::string{GetParam().barrier} == "bsp") {
      EXPECT_LE(apart, 1e-5);
    }
    here_sum += accuracy_here;
    there_sum += accuracy_there;
  }
  tell("mean_accuracy_here", std::to_string(here_sum / 3));
  tell("mean_accuracy_on_three_hosts", std::to_string(there_sum / 3));
}

}  // namespace
}  // namespace starling::program
