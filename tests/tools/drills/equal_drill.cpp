/// Runs the same job in one process and on three hosts, in every mode, and compares the models.
#include <array>
#include <set>

#include "test_paths.hpp"
#include "tests/tools/drills/drills.hpp"

namespace starling::program {
namespace {

class EqualModels : public Drill {
 protected:
  static constexpr const char* three_seeds[] = {"1", "2", "3"};

  /// Returns the folder of the data sets: STARLING_DATA_DIR, from the environment or as built.
  static std::string data_folder() {
    const char* chosen = std::getenv("STARLING_DATA_DIR");
    return std::filesystem::weakly_canonical(chosen != nullptr ? chosen : STARLING_DATA_DIR)
        .string();
  }
};

INSTANTIATE_TEST_SUITE_P(In, EqualModels, testing::ValuesIn(job_modes), name_of);

TEST_P(EqualModels, LearnMnistInOneProcessAndOnThreeHosts) {
  const std::string images = data_folder() + "/mnist-10k-images-idx3-ubyte.gz";
  if (!std::filesystem::exists(images)) GTEST_SKIP() << "no data sets at " << data_folder();
  ASSERT_NO_FATAL_FAILURE(start_on_hosts(3));
  if (IsSkipped()) return;
  double local_sum = 0;
  double remote_sum = 0;
  for (const char* seed : three_seeds) {
    const std::string job = "--data idx:" + images + "," + data_folder() +
                            "/mnist-10k-labels-idx1-ubyte.gz --split 8000 --model mlp:784-128-10 "
                            "--optimizer sgd:lr=0.5 --batch 8 --epochs 10 --workers 6 --json "
                            "--quiet --seed " +
                            seed + " " + flags(GetParam());
    const Folder folder;
    const ProgramResult local =
        run(folder, STARLING_PROGRAM, words("train " + job + "--save m.safetensors"));
    ASSERT_EQ(local.code, 0) << local.err;
    fleet_->submit(1, job + "--save m.safetensors");
    std::set<std::size_t> training;
    EXPECT_TRUE(fleet_->watch(30s,
                              [&] {
                                for (const std::size_t node : fleet_->awake())
                                  if (const auto status = fleet_->status_of(node))
                                    for (const auto& [member, step] : status->steps)
                                      if (step > 0) training.insert(node);
                                return training.size() == 3;
                              }))
        << training.size() << " of 3 hosts train";
    const ProgramResult remote = fleet_->finish();
    ASSERT_EQ(remote.code, 0) << remote.err;
    EXPECT_EQ(number_in(remote.out, "updates"), number_in(local.out, "updates"));
    const double local_accuracy = number_in(local.out, "test_accuracy");
    const double remote_accuracy = number_in(remote.out, "test_accuracy");
    const double difference =
        relative_distance(elements(fleet_->work_folder().read("m.safetensors")),
                          elements(folder.read("m.safetensors")));
    std::array<char, 160> line{};
    std::snprintf(
        line.data(), line.size(),
        "accuracy in one process %.4f, on three hosts %.4f in %.1f s; parameters differ by %.1e",
        local_accuracy, remote_accuracy, number_in(remote.out, "wall_s"), difference);
    report(std::string{"seed_"} + seed, line.data());
    EXPECT_NEAR(local_accuracy, remote_accuracy, 0.01);
    if (std::string{GetParam().barrier} == "bsp") {
      EXPECT_LE(difference, 1e-5);
    }
    local_sum += local_accuracy;
    remote_sum += remote_accuracy;
  }
  report("mean_accuracy_in_one_process", std::to_string(local_sum / 3));
  report("mean_accuracy_on_three_hosts", std::to_string(remote_sum / 3));
}

}  // namespace
}  // namespace starling::program
