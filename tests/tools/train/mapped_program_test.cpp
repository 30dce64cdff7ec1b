/// Runs the program on data that stay in a mapped file.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "starling/base/random.hpp"
#include "tests/models/data/numpy.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using models::aligned_npy;
using models::little;
using models::npy;

/// Has 400 rows of two features in x.npy, whose label in y.npy is 1 if the first is the larger.
class MappedData : public testing::Test {
 protected:
  MappedData() {
    Random random{7};
    std::vector<float> x(800);
    for (float& value : x) value = static_cast<float>(random.real());
    std::vector<std::int64_t> y(400);
    for (std::size_t row = 0; row < 400; ++row) y[row] = x[2 * row] > x[2 * row + 1] ? 1 : 0;
    folder_.write("x.npy", aligned_npy("<f4", "400, 2", little(x)));
    folder_.write("y.npy", npy("<i8", "400,", little(y)));
  }

  [[nodiscard]] nlohmann::json train(const std::string& data) const {
    const ProgramResult ran = starling(
        folder_, "train --data " + data + " --workers 1 --steps 200 --quiet --json --save m");
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out, nullptr, false);
  }

  Folder folder_;
};

TEST_F(MappedData, TrainTheModelThatTheSameDataInMemoryTrain) {
  const nlohmann::json in_memory = train("npy:x.npy,y.npy");
  const std::string predicted = starling(folder_, "predict m --data npy:x.npy").out;
  const nlohmann::json mapped = train("npy:x.npy,y.npy,mapped=yes");
  for (const char* figure : {"train_loss", "test_loss", "test_accuracy"}) {
    ASSERT_TRUE(in_memory.contains(figure)) << in_memory;
    EXPECT_EQ(in_memory[figure], mapped[figure]) << figure;
  }
  EXPECT_GT(mapped["test_accuracy"], 0.8);
  const ProgramResult from_file = starling(folder_, "predict m --data npy:x.npy,mapped=yes");
  EXPECT_EQ(from_file.code, 0) << from_file.err;
  EXPECT_EQ(from_file.out, predicted);
  const ProgramResult evaluated = starling(folder_, "evaluate m --json");
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(starling(folder_, "inspect npy:x.npy,y.npy,mapped=yes").out.find("400 rows"),
            std::string::npos);
}

TEST_F(MappedData, AreNotScaled) {
  const ProgramResult ran =
      starling(folder_, "train --data npy:x.npy,y.npy,mapped=yes --scale standard");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("scale: standard would copy mapped data into memory; valid: none, or data "
                         "without mapped=yes"),
            std::string::npos)
      << ran.err;
}

/// A file may change while a job runs, so models that check ids at the start refuse it.
TEST_F(MappedData, AreNoIds) {
  folder_.write("ids.npy", aligned_npy("<f4", "4, 2", little<float>({0, 1, 1, 0, 1, 1, 0, 0})));
  folder_.write("ratings.npy", npy("<f4", "4,", little<float>({1, 2.5F, 3, 4})));
  folder_.write("net.toml", "layers = \"embedding 2 width=2; flatten; dense 1\"\n");
  for (const char* model : {"mf:users=2,items=2", "net:net.toml"}) {
    const std::string command = std::string{"train --steps 4 --quiet --model "} + model;
    const ProgramResult in_memory =
        starling(folder_, command + " --data npy:ids.npy,ratings.npy --scale none");
    EXPECT_EQ(in_memory.code, 0) << model << in_memory.err;
    const ProgramResult mapped =
        starling(folder_, command + " --data npy:ids.npy,ratings.npy,mapped=yes");
    EXPECT_EQ(mapped.code, 2) << model;
    EXPECT_NE(
        mapped.err.find("ids cannot stay in a mapped file, where they may change; valid: data "
                        "without mapped=yes"),
        std::string::npos)
        << mapped.err;
  }
}

}  // namespace
}  // namespace starling::program
